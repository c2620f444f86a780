"""How an alert stands, and what people did about it, in a line."""

from collections.abc import Mapping
from typing import Final

from hybridwatch.analysis.alerts import Alert, AlertGroup, DecisionEntry, Deed, Status
from hybridwatch.pages.document import Line, When
from hybridwatch.reports.alert_text import CLOSED

NOBODY: Final = "nobody"
DONE: Final[Mapping[Deed, str]] = {
    Deed.ACKNOWLEDGE: "acknowledged",
    Deed.LINK: "linked an issue",
    Deed.ASSIGN: "assigned",
    Deed.MUTE: "muted",
    Deed.UNMUTE: "unmuted",
    Deed.NOTE: "noted",
    Deed.REOPEN: "reopened",
    Deed.ACCEPT: "accepted as expected",
    Deed.INVALID: "called it invalid",
    Deed.DUPLICATE: "called it a duplicate of",
}
"""What a person did, after the name."""


def entry_line(entry: DecisionEntry) -> str:
    """Tell one act in a line: who did what, and the words that came with it."""
    act = entry.act
    if act.deed is Deed.ASSIGN:
        return f"{entry.who} {f'assigned {act.text}' if act.text else 'took it from everybody'}"
    until = f" until {act.until:%Y-%m-%d}" if act.until else ""
    return f"{entry.who} {DONE[act.deed]}{until}" + (f": {act.text}" if act.text else "")


def status_line(alert: Alert | AlertGroup) -> Line:
    """Say how an alert stands, and how it came to be closed."""
    if alert.muted_until is not None:
        return ("muted until ", When(alert.muted_until, f"{alert.muted_until:%Y-%m-%d}"))
    answer = alert.decisions.answer
    if alert.status is Status.CLOSED and answer is not None:
        return f"closed: {CLOSED[answer.act.deed]}"
    return "between two releases" if alert.status is Status.RELEASE else alert.status.value
