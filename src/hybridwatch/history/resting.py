"""Runs that are kept whole, because a person or a result refers to them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from hybridwatch.analysis.alerts import Alert, Status
from hybridwatch.database.moment import HISTORY
from hybridwatch.database.queries import Index
from hybridwatch.history.lines import build_lines
from hybridwatch.metrics import find_metric
from hybridwatch.records.store import list_verdicts, read_baselines, read_examples, read_verdict
from hybridwatch.records.store.maintenance import OldRun

_ALL: Final = 10**9
"""Runs of a line that are examined."""


def old_runs(index: Index) -> list[OldRun]:
    """List the runs of a store as a policy of keeping them sees them."""
    found: list[OldRun] = []
    for record, sides in index.runs().groupby("record", sort=False):
        first = sides.iloc[0]
        like = (first["scenario"], first["digest"], first["testbed"], *sides["line"])
        started_at: datetime = first["started_at"].to_pydatetime()
        found.append(OldRun(str(record), first["run"], like, started_at))
    return found


def runs_that_stay(
    results: Path, index: Index, alerts: Iterable[Alert], say: Callable[[int, int], None]
) -> dict[str, str]:
    """Name the runs that have to stay whole, and why; ``say`` gets series done, and all."""
    every = dict.fromkeys(index.runs()["run"].tolist())
    reasons = (
        ((run, "an example that came with hybridwatch") for run in read_examples(results)),
        _pinned(results, every),
        _of_alerts(alerts),
        _of_verdicts(results),
        _runs_at_changes(index, say),
    )
    found: dict[str, str] = {}
    for run, why in chain.from_iterable(reasons):
        if run in every:
            found.setdefault(run, why)
    return found


def _pinned(results: Path, every: Iterable[str]) -> Iterator[tuple[str, str]]:
    for baseline in read_baselines(results):
        for run in every:
            if run.startswith(baseline.run):
                yield run, f"pinned as a baseline: {baseline.reason}"


def _of_alerts(alerts: Iterable[Alert]) -> Iterator[tuple[str, str]]:
    for alert in alerts:
        for entry in alert.decisions.all:
            yield entry.seen.run_id, f"{entry.who} acted on an alert of it"
        if not (alert.status is Status.CLOSED or alert.status.is_over):
            for run_verdict in (alert.opened_by, alert.bad):
                yield run_verdict.run_id, f"an alert rests on it: {alert.subject.scenario}"


def _of_verdicts(results: Path) -> Iterator[tuple[str, str]]:
    for path in list_verdicts(results):
        verdict, _ = read_verdict(path)
        for side in (verdict.baseline, verdict.contender):
            yield side.run_id, f"a stored verdict was made of it: {path.name}"


def _runs_at_changes(index: Index, say: Callable[[int, int], None]) -> Iterator[tuple[str, str]]:
    cells = index.cells()[list(HISTORY)].drop_duplicates()
    for done, found in enumerate(cells.itertuples(), start=1):
        say(done, len(cells))
        cell: Any = found  # a named tuple of the frame's columns
        metric = find_metric(cell.metric)
        series = index.series(*cell[1:])
        for line in build_lines(series, metric, newest=_ALL, over_releases=False):
            runs = line.levels["run"].tolist()
            for point in line.history.points:
                for run in runs[max(point.index - 1, 0) : point.index + 1]:
                    yield run, f"{cell.metric} changed next to it"
