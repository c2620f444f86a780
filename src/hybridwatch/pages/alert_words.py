"""How an alert stands, and what people did about it, in a line."""

from collections.abc import Mapping
from typing import Final

from hybridwatch.analysis.alert_decisions import DecisionEntry, TriageAction
from hybridwatch.analysis.alerts import Alert, AlertGroup, Status
from hybridwatch.pages.document import Line, When
from hybridwatch.reports.alert_text import CLOSED

NOBODY: Final = "nobody"
DONE: Final[Mapping[TriageAction, str]] = {
    TriageAction.ACKNOWLEDGE: "acknowledged",
    TriageAction.LINK: "linked an issue",
    TriageAction.ASSIGN: "assigned",
    TriageAction.MUTE: "muted",
    TriageAction.UNMUTE: "unmuted",
    TriageAction.NOTE: "noted",
    TriageAction.REOPEN: "reopened",
    TriageAction.ACCEPT: "accepted as expected",
    TriageAction.INVALID: "called it invalid",
    TriageAction.DUPLICATE: "called it a duplicate of",
}
"""What a person did, after the name."""


def entry_line(entry: DecisionEntry) -> str:
    """Tell one decision in a line: who did what, and the words that came with it."""
    decision = entry.decision
    if decision.action is TriageAction.ASSIGN:
        done = f"assigned {decision.text}" if decision.text else "took it from everybody"
        return f"{entry.who} {done}"
    until = f" until {decision.until:%Y-%m-%d}" if decision.until else ""
    return f"{entry.who} {DONE[decision.action]}{until}" + (
        f": {decision.text}" if decision.text else ""
    )


def status_line(alert: Alert | AlertGroup) -> Line:
    """Say how an alert stands, and how it came to be closed."""
    if alert.muted_until is not None:
        return ("muted until ", When(alert.muted_until, f"{alert.muted_until:%Y-%m-%d}"))
    answer = alert.decisions.answer
    if alert.status is Status.CLOSED and answer is not None:
        return f"closed: {CLOSED[answer.decision.action]}"
    return "between two releases" if alert.status is Status.RELEASE else alert.status.value
