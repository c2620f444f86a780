"""The answer to each question, made by what the verbs' ``--json`` is made by."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias

from hybridwatch.api.paging import cut
from hybridwatch.api.problem import ProblemError, missing
from hybridwatch.api.queries import AlertsQuery, LevelsQuery, Nothing, RunsQuery, SeriesQuery
from hybridwatch.api.view import Snapshot
from hybridwatch.database.queries import Index
from hybridwatch.errors import ComparisonError
from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.judge import both_sides, judge
from hybridwatch.history.kept import kept_of_one_index
from hybridwatch.history.runs import Row, runs_by_id
from hybridwatch.metric import metric_of
from hybridwatch.report.jsonform import alert_to_json, comparison_to_json
from hybridwatch.report.record_list import ALONE, RunFilter, record_to_json
from hybridwatch.store import Stored, read_run

Named: TypeAlias = Mapping[str, str]
"""What stands in the path of a request, by name."""
_KEY: Final = 16
"""Hexadecimal digits of a series' id."""


def runs(store: Snapshot, _: Named, query: RunsQuery) -> dict[str, Any]:
    """List runs, the newest first."""
    roles = store.index.roles()
    wanted = RunFilter(query.scenario, query.build, query.testbed, query.role)
    found = [
        row
        for row in runs_by_id(store.index).values()
        if wanted.fits(row.scenario, row.testbed, row.builds, roles.get(row.record, ALONE))
    ]
    page = cut([row.run for row in found], query)
    items = [_run(store, row) for row in found[page.start : page.end]]
    return {"items": items, "next": page.next}


def run(store: Snapshot, named: Named, _: Nothing) -> dict[str, Any]:
    """Give one run of the list."""
    return _run(store, _row(store, named))


def report(store: Snapshot, named: Named, _: Nothing) -> dict[str, Any]:
    """Give every verdict of a run of two builds."""
    results = store.place.results
    record = results / _row(store, named).record
    try:
        judged = judge(*both_sides(record, read_run(record)), results)
    except ComparisonError as error:
        raise ProblemError(HTTPStatus.CONFLICT, str(error)) from error
    return comparison_to_json(judged.report)


def series(store: Snapshot, _: Named, query: SeriesQuery) -> dict[str, Any]:
    """List series."""
    wanted = RunFilter(query.scenario, testbed=query.testbed)
    found = [
        one
        for one in _series(store.index).values()
        if wanted.fits(one["scenario"], one["testbed"], [""], "")
        and query.metric in {"", one["metric"]}
        and query.statistic in {"", one["statistic"]}
    ]
    page = cut([one["id"] for one in found], query)
    return {"items": found[page.start : page.end], "next": page.next}


def levels(store: Snapshot, named: Named, query: LevelsQuery) -> dict[str, Any]:
    """Give the points of a series, oldest first."""
    index = store.index
    one = _series(index).get(named["series"])
    if one is None:
        raise missing("series", "the id of a series", named["series"])
    cell = (one["scenario"], one["version"], one["testbed"], one["metric"], one["statistic"])
    frame = index.levels(*cell)[one["metric"], one["statistic"]]
    frame = frame[frame["build"].str.startswith(query.build)]
    keys = [f"{run}#{side}" for run, side in zip(frame["run"], frame["side"], strict=True)]
    page = cut(keys, query)
    shown = frame.iloc[page.start : page.end].rename(columns={"run": "run_id"})
    columns = ["run_id", "record", "started_at", "build", "release", "side", "value", "n"]
    items = shown[columns].to_dict("records")
    dated = [item | {"started_at": item["started_at"].isoformat()} for item in items]
    return {"series": one, "items": dated, "next": page.next}


def alerts(store: Snapshot, _: Named, query: AlertsQuery) -> dict[str, Any]:
    """List alerts, the most urgent first."""
    place, now = store.place, datetime.now(UTC)
    wanted = RunFilter(query.scenario)
    found = [
        alert
        for alert in find_alerts(place.results, store.index, place.checkout(), now, place.triage)
        if query.status in {"", alert.status.value}
        and wanted.fits(alert.matter.scenario, alert.matter.testbed, [""], "")
    ]
    page = cut([alert.matter.key for alert in found], query)
    items = [alert_to_json(alert) for alert in found[page.start : page.end]]
    return {"items": items, "next": page.next}


def _row(store: Snapshot, named: Named) -> Row:
    row = runs_by_id(store.index).get(named["run"])
    if row is None:
        raise missing("run", "the id of a stored run", named["run"])
    return row


def _run(store: Snapshot, row: Row) -> dict[str, Any]:
    found = read_run(store.place.results / row.record, bulk=False)
    return record_to_json(Stored(Path(row.record), found))


@kept_of_one_index
def _series(index: Index, /) -> Mapping[str, dict[str, Any]]:
    """Give every series by its id, which is the same on every machine."""
    found = {}
    for one in index.cells().to_dict("records"):
        metric = metric_of(one["metric"])
        cell = [one["scenario"], one["version"], one["testbed"], metric.id, one["statistic"]]
        key = hashlib.sha256(repr(cell).encode()).hexdigest()[:_KEY]
        found[key] = {
            "id": key,
            "scenario": one["scenario"],
            "version": one["version"],
            "testbed": one["testbed"],
            "metric": metric.id,
            "statistic": one["statistic"],
            "unit": metric.unit.value,
            "better": metric.better.value,
            "kind": metric.kind.value,
            "runs": one["runs"],
            "newest": one["newest"].isoformat(),
        }
    return found
