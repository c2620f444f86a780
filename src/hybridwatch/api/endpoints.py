"""The answer to each question, by what makes the verbs' ``--json``, and what can be done."""

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.analysis.alert_decisions import (
    LONGEST_TEXT,
    TriageAction,
    TriageConflict,
    check_other,
    make_decision,
)
from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.analysis.wording.report_json import comparison_to_json
from hybridwatch.api.queries import (
    NOTHING,
    AlertsQuery,
    LevelsQuery,
    Nothing,
    ProblemError,
    RunsQuery,
    SeriesQuery,
    cut,
    missing,
    unfit,
)
from hybridwatch.api.view import Snapshot, StoreView
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.moment import CELL
from hybridwatch.database.queries import Index
from hybridwatch.errors import (
    ComparisonError,
    IngestError,
    RecordConflictError,
    RecordError,
    TriageError,
)
from hybridwatch.formats.read.read import read_own
from hybridwatch.history.judge import both_sides, judge
from hybridwatch.history.runs import cached_per_index, runs_by_id
from hybridwatch.metrics import find_metric
from hybridwatch.records.store import read_run, take_in
from hybridwatch.reports.jsonform import ALONE, RunFilter, row_to_json

Named: TypeAlias = Mapping[str, str]
"""What stands in the path of a request, by name."""
Files: TypeAlias = Mapping[str, bytes]
"""What came with a request, by name."""
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
    record = store.results / name
    try:
        judged = judge(*both_sides(record, read_run(record)), store.results)
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


_log: Final = logging.getLogger(__name__)
RECORD: Final = "record"
BULK: Final = "bulk"
DECISION: Final = "decision"
_FINDING: Final = re.compile(r"(?P<field>.+?): expected (?P<expected>.+), found (?P<found>.+)")


@dataclass(frozen=True, slots=True)
class Done:
    """What was done."""

    status: HTTPStatus
    content: dict[str, Any]
    location: str


class DecisionRequest(BaseModel):
    """A decision about an alert, as it was shown to the caller."""

    model_config = ConfigDict(extra="forbid", strict=True)

    action: TriageAction
    text: str = Field("", max_length=LONGEST_TEXT, description="A reason, a note, a name, a URL.")
    until: AwareDatetime | None = Field(None, description="When a mute ends.")
    version: int = Field(ge=0, description="`version` of the alert, as it was shown.")
    newest_run_id: str = Field(description="`newest_run_id` of the alert, as it was shown.")


def add_run(view: StoreView, _: Named, who: str, files: Files) -> Done:
    """Add a record, unless it is there."""
    try:
        added, encoded = read_own(files[RECORD], lambda name: _bulk(files, name))
    except (RecordError, IngestError) as error:
        raise _found_unfit(str(error)) from error
    if encoded.bulk is None and BULK in files:
        raise unfit(BULK, "no file with this record", "one")
    try:
        is_new = take_in(view.results, added, encoded)
    except RecordConflictError as error:
        said = f"run {added.id} is there already and says something else; records never change"
        raise ProblemError(HTTPStatus.CONFLICT, said, field="id", found=added.id) from error
    view.look_again()
    row = run(view.now(), {"run": added.id})
    _log.info("run %s: added by %s", added.id, who)
    return Done(HTTPStatus.CREATED if is_new else HTTPStatus.OK, row, f"/runs/{added.id}")


def decide(view: StoreView, named: Named, who: str, files: Files) -> Done:
    """Answer an alert as it was shown: every member that is not resolved."""
    key, now = named["alert"], datetime.now(UTC)
    try:
        said = DecisionRequest.model_validate_json(files[DECISION])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or DECISION
        raise unfit(field, first["msg"], str(first["input"])) from error
    view.look_again()
    alert = view.now().alerts().found.get(key)
    if alert is None:
        raise missing("alert", "the key of an alert", key)
    try:
        decision = make_decision(said.action, said.text, said.until, now)
        check_other(decision, key)
    except TriageError as error:
        raise _found_unfit(str(error)) from error
    _check_shown(said, alert)
    with open_triage(view.results) as triage:
        failed = triage.decide_all(alert.current, decision, who, now)
    for trouble in failed.values():
        if isinstance(trouble, TriageConflict):
            raise ProblemError(HTTPStatus.CONFLICT, str(trouble), field="version") from trouble
        raise trouble
    view.look_again()
    alerts = view.now().alerts()
    return Done(HTTPStatus.CREATED, alerts.by_key[alerts.found[key].key], f"/alerts/{key}")


def _check_shown(said: DecisionRequest, alert: AlertGroup) -> None:
    there = {"version": alert.version, "newest_run_id": alert.newest.run_id}
    for field, value in there.items():
        found = getattr(said, field)
        if found != value:
            raise ProblemError(
                HTTPStatus.CONFLICT,
                f"{field}: the alert has changed since it was shown; look at it again",
                field=field,
                expected=str(value),
                found=str(found),
            )


def _bulk(files: Files, name: str) -> bytes:
    if BULK not in files:
        raise unfit(BULK, f"{name} as a file of the form", "none")
    return files[BULK]


def _found_unfit(said: str) -> ProblemError:
    """Name the place that a reader of records, or of decisions, found wrong."""
    found = _FINDING.fullmatch(said)
    if found is None:
        return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, said)
    return unfit(found["field"], found["expected"], found["found"])
