"""What is answered about alerts; fields are as in ``docs/json.md``."""

from datetime import datetime

from pydantic import Field

from hybridwatch.analysis.alerts import Deed, Status
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import Action
from hybridwatch.api.answers import Answer, PartItem


class DecisionItem(Answer):
    """What somebody did about an alert."""

    number: int
    at: datetime
    who: str
    deed: Deed
    text: str
    until: datetime | None


class MemberItem(Answer):
    """One place where a cause shows."""

    key: str
    scenario: str
    testbed: str
    baseline: str
    contender: str
    status: Status
    effect: float | None
    run_id: str


class AlertItem(Answer):
    """Bad news of one cause, and what became of it."""

    key: str
    scenario: str
    area: Area
    testbed: str
    baseline: str
    contender: str
    status: Status
    action: Action
    what: str
    detail: str
    parts: list[PartItem]
    members: list[MemberItem]
    run_id: str
    newest_run_id: str
    opened_at: datetime
    muted_until: datetime | None
    version: int = Field(ge=0)
    decisions: list[DecisionItem]


class AlertPage(Answer):
    """Alerts, the most urgent first."""

    items: list[AlertItem]
    next: str | None
