"""The state of a results folder as gauges of OpenMetrics, by ``prometheus_client``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import generate_latest

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.queries import Index
from hybridwatch.history.alerts import find_alerts, find_gaps
from hybridwatch.history.checkout import Checkout
from hybridwatch.history.runs import latest_comparisons
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.overview import read_overview

_OF_PAIR = ("scenario", "testbed", "baseline", "contender", "verdict")
_OF_RUN = ("scenario", "testbed")
_OF_ALERT = ("scenario", "testbed", "status", "action")
_Values = Mapping[Any, float]
"""By the values of a gauge's labels, in their order."""


def to_openmetrics(results: Path, index: Index, checkout: Checkout, now: datetime) -> bytes:
    """Write how a results folder stands, as text of OpenMetrics 1.0.

    Ages count back from ``now``, which is aware.
    """
    registry = CollectorRegistry()

    def show(name: str, about: str, labels: Sequence[str], values: _Values) -> None:
        gauge = Gauge(f"hybridwatch_{name}", about, labels, registry=registry)
        for key, value in values.items():
            (gauge.labels(*key) if key else gauge).set(value)

    gaps = find_gaps(results, index, checkout, now)
    job_queue = JobQueue(Database(find_database_url(results)), lambda: now)
    latest = latest_comparisons(index)
    rows = latest.loc[~latest["stale"], list(_OF_PAIR)].itertuples(index=False)
    verdicts = Counter(tuple(map(str, row)) for row in rows)
    show("verdicts", "Metrics of a newest comparison that say so.", _OF_PAIR, verdicts)
    runs = index.runs()  # oldest first
    places = zip(runs["scenario"], runs["testbed"], strict=True)
    moments = (moment.timestamp() for moment in runs["started_at"])
    newest = dict(zip(places, moments, strict=True))
    show("newest_run_timestamp_seconds", "When it began.", _OF_RUN, newest)
    standings = Counter(
        (one.subject.scenario, one.subject.testbed, one.status.value, one.rank.value)
        for one in find_alerts(results, index, checkout, now)
    )
    show("alerts", "Alerts, by what people and the gate do.", _OF_ALERT, standings)
    show(
        "missing", "1: expected, not measured.", _OF_RUN, {(g.scenario, g.testbed): 1 for g in gaps}
    )
    show("unreadable_records", "Records that cannot be read.", (), {(): len(index.broken())})
    if job_queue.is_made():
        overview = read_overview(job_queue)
        jobs = Counter[tuple[str, ...]]()
        for batch in overview.batches:
            jobs.update({(state.value,): n for state, n in batch.states.items()})
        show("fleet_jobs", "Jobs of the newest nights.", ("state",), jobs)
        hosts = Counter((one.standing.value, str(one.is_there).lower()) for one in overview.hosts)
        show("fleet_hosts", "Hosts of the fleet.", ("standing", "there"), hosts)
    written: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return written
