"""What can be done to a store: a record added, an alert answered."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.analysis.alert_decisions import (
    LONGEST_TEXT,
    Decision,
    TriageAction,
    TriageConflict,
    check_other,
    make_decision,
)
from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.api import endpoints
from hybridwatch.api.endpoints import Named
from hybridwatch.api.problem import ProblemError, missing, unfit
from hybridwatch.api.view import StoreView
from hybridwatch.database.decisions import open_triage
from hybridwatch.errors import IngestError, RecordConflictError, RecordError, TriageError
from hybridwatch.formats.read.read import read_own
from hybridwatch.records.store import take_in

_log: Final = logging.getLogger(__name__)
RECORD: Final = "record"
BULK: Final = "bulk"
DECISION: Final = "decision"
_FINDING: Final = re.compile(r"(?P<field>.+?): expected (?P<expected>.+), found (?P<found>.+)")


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller gave.

    Attributes:
        who: The name of their token.
        files: What came with the request.
    """

    who: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Done:
    """What was done.

    Attributes:
        status: Of the answer.
        content: What there is now.
        location: Its address, below the prefix.
    """

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


def add_run(view: StoreView, _: Named, given: Given) -> Done:
    """Add a record, unless it is there."""
    try:
        run, encoded = read_own(given.files[RECORD], lambda name: _bulk(given, name))
    except (RecordError, IngestError) as error:
        raise _unfit(str(error)) from error
    if encoded.bulk is None and BULK in given.files:
        raise unfit(BULK, "no file beside this record", "one")
    try:
        is_new = take_in(view.place.results, run, encoded)
    except RecordConflictError as error:
        said = f"run {run.id} is there already and says something else; records never change"
        raise ProblemError(HTTPStatus.CONFLICT, said, field="id", found=run.id) from error
    view.look_again()
    row = endpoints.run(view.now(), {"run": run.id})
    _log.info("run %s: added by %s", run.id, given.who)
    return Done(HTTPStatus.CREATED if is_new else HTTPStatus.OK, row, f"/runs/{run.id}")


def decide(view: StoreView, named: Named, given: Given) -> Done:
    """Answer an alert as it was shown: every member that is not resolved."""
    key, now = named["alert"], datetime.now(UTC)
    try:
        said = DecisionRequest.model_validate_json(given.files[DECISION])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or DECISION
        raise unfit(field, first["msg"], str(first["input"])) from error
    view.look_again()
    alert = view.now().alerts().found.get(key)
    if alert is None:
        raise missing("alert", "the key of an alert", key)
    decision = _build_decision(said, key, now)
    _check_shown(said, alert)
    with open_triage(view.place.results, view.place.triage) as triage:
        failed = triage.decide_all(alert.current, decision, given.who, now)
    for trouble in failed.values():
        if isinstance(trouble, TriageConflict):
            raise ProblemError(HTTPStatus.CONFLICT, str(trouble), field="version") from trouble
        raise trouble
    view.look_again()
    alerts = view.now().alerts()
    return Done(HTTPStatus.CREATED, alerts.by_key[alerts.found[key].key], f"/alerts/{key}")


def _build_decision(said: DecisionRequest, key: str, now: datetime) -> Decision:
    try:
        decision = make_decision(said.action, said.text, said.until, now)
        check_other(decision, key)
    except TriageError as error:
        raise _unfit(str(error)) from error
    return decision


def _check_shown(said: DecisionRequest, alert: AlertGroup) -> None:
    """Refuse an answer to an alert that has changed since it was shown."""
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


def _bulk(given: Given, name: str) -> bytes:
    if BULK not in given.files:
        raise unfit(BULK, f"{name} as a file of the form", "none")
    return given.files[BULK]


def _unfit(said: str) -> ProblemError:
    """Name the place that a reader of records, or of decisions, found wrong."""
    found = _FINDING.fullmatch(said)
    if found is None:
        return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, said)
    return unfit(found["field"], found["expected"], found["found"])
