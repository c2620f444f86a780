"""The answer to each question, made by what the verbs' ``--json`` is made by."""

import hashlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final, TypeAlias

from hybridwatch.analysis.wording.report_json import comparison_to_json
from hybridwatch.api.problem import ProblemError, missing
from hybridwatch.api.queries import (
    NOTHING,
    AlertsQuery,
    LevelsQuery,
    Nothing,
    RunsQuery,
    SeriesQuery,
    cut,
)
from hybridwatch.api.view import Snapshot
from hybridwatch.database.queries import Index
from hybridwatch.database.statements import CELL
from hybridwatch.errors import ComparisonError
from hybridwatch.history.judge import both_sides, judge
from hybridwatch.history.runs import cached_per_index, runs_by_id
from hybridwatch.metrics import find_metric
from hybridwatch.records.store import read_run
from hybridwatch.reports.record_list import ALONE, RunFilter, row_to_json

Named: TypeAlias = Mapping[str, str]
"""What stands in the path of a request, by name."""
_KEY: Final = 16
"""Hexadecimal digits of a series' id."""


def runs(store: Snapshot, _: Named, query: RunsQuery) -> dict[str, Any]:
    """List runs, the newest first."""
    wanted = RunFilter(query.scenario, query.build, query.testbed, query.role)
    found = [
        one
        for one in _runs(store.index).values()
        if wanted.fits(one["scenario"], one["testbed"], one["builds"] + one["lines"], one["role"])
    ]
    return cut(found, query, itemgetter("run_id"))


def run(store: Snapshot, named: Named, _: Nothing = NOTHING) -> dict[str, Any]:
    """Give one run of the list."""
    one = _runs(store.index).get(named["run"])
    if one is None:
        raise missing("run", "the whole id of a stored run, as /v1/runs lists them", named["run"])
    return one


def report(store: Snapshot, named: Named, _: Nothing) -> dict[str, Any] | bytes:
    """Give every verdict of a run of two builds."""
    name = run(store, named)["record"]
    known = store.index.report(name)
    if known is not None:
        return known
    results = store.place.results
    record = results / name
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
    return cut(found, query, itemgetter("id"))


def levels(store: Snapshot, named: Named, query: LevelsQuery) -> dict[str, Any]:
    """Give the points of a series, oldest first."""
    index = store.index
    one = _series(index).get(named["series"])
    if one is None:
        raise missing("series", "the id of a series, as /v1/series lists them", named["series"])
    every = _points(index, *(one[name] for name in CELL))
    found = [
        point
        for point in every
        if point["build"].startswith(query.build) or point["line"].startswith(query.build)
    ]
    return {"series": one, **cut(found, query, lambda level: f"{level['run_id']}#{level['side']}")}


def alerts(store: Snapshot, _: Named, query: AlertsQuery) -> dict[str, Any]:
    """List alerts, the most urgent first."""
    wanted = RunFilter(query.scenario)
    found = [
        one
        for one in store.alerts().by_key.values()
        if query.status in {"", one["status"]}
        and any(wanted.fits(it["scenario"], it["testbed"], [""], "") for it in one["members"])
    ]
    return cut(found, query, itemgetter("key"))


def alert(store: Snapshot, named: Named, _: Nothing) -> dict[str, Any]:
    """Give one alert of the list, by its key or by that of a member."""
    alerts = store.alerts()
    one = alerts.found.get(named["alert"])
    if one is None:
        raise missing("alert", "the key of an alert, as /v1/alerts lists them", named["alert"])
    return alerts.by_key[one.key]


@cached_per_index
def _runs(index: Index, /) -> Mapping[str, dict[str, Any]]:
    """Give every run by its id, the newest first."""
    roles = index.roles()
    found = runs_by_id(index)
    return {name: row_to_json(row, roles.get(row.record, ALONE)) for name, row in found.items()}


@cached_per_index
def _points(
    index: Index, /, scenario: str, version: int, digest: str, testbed: str, *metric: str
) -> Sequence[dict[str, Any]]:
    return index.points(scenario, version, digest, testbed, *metric)


@cached_per_index
def _series(index: Index, /) -> Mapping[str, dict[str, Any]]:
    """Give every series by its id, which is the same on every machine."""
    found = {}
    for one in index.cells().to_dict("records"):
        metric = find_metric(one["metric"])
        cell = {name: one[name] for name in CELL}
        key = hashlib.sha256(repr([*cell.values()]).encode()).hexdigest()[:_KEY]
        found[key] = {
            "id": key,
            **cell,
            "unit": metric.unit.value,
            "better": metric.better.value,
            "kind": metric.kind.value,
            "runs": one["runs"],
            "newest": one["newest"].isoformat(),
        }
    return found
