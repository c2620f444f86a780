"""How an alert is called: what happened, by how much, and where it shows."""

from collections.abc import Mapping
from typing import Final

from hybridwatch.analysis.cause import Part
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.sight import kind_of
from hybridwatch.analysis.verdict import Report
from hybridwatch.pages.document import Line, When
from hybridwatch.report import numbers
from hybridwatch.report.cause_text import CauseText, cause_text
from hybridwatch.triage import CONTROL, Alert, Deed, Entry, Status, Story

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
"""What somebody did, after the name."""
_CLOSED: Final[Mapping[Deed, str]] = {
    Deed.ACCEPT: "expected",
    Deed.INVALID: "invalid",
    Deed.DUPLICATE: "duplicate",
}
_NOT_CAUGHT: Final = CauseText("Known-bad control not caught", "")


def alert_text(alert: Alert | Story, report: Report | None = None) -> CauseText:
    """Put into words what an alert is about.

    Args:
        alert: The alert, or what the verdicts tell of it.
        report: Of its newest bad run; without it no reason of a failure is known.
    """
    return _NOT_CAUGHT if is_control(alert) else cause_text(alert.cause, report)


def is_control(alert: Alert | Story) -> bool:
    """Whether it is about a known-bad control that was not caught."""
    return alert.cause.lead.metric == CONTROL


def change_of(part: Part) -> str:
    """Write the change of a metric, ``-`` without one."""
    kind = kind_of(part.metric)
    return numbers.effect(part.effect, kind) if kind else numbers.ABSENT


def entry_line(entry: Entry) -> str:
    """Tell one act in a line: who did what, and the words that came with it."""
    act = entry.act
    if act.deed is Deed.ASSIGN:
        return f"{entry.who} {f'assigned {act.text}' if act.text else 'took it from everybody'}"
    until = f" until {act.until:%Y-%m-%d}" if act.until else ""
    return f"{entry.who} {DONE[act.deed]}{until}" + (f": {act.text}" if act.text else "")


def status_line(alert: Alert) -> Line:
    """Say how an alert stands, and how it came to be closed."""
    if alert.muted_until is not None:
        return ("muted until ", When(alert.muted_until, f"{alert.muted_until:%Y-%m-%d}"))
    answer = alert.decisions.answer
    if alert.status is Status.CLOSED and answer is not None:
        return f"closed: {_CLOSED[answer.act.deed]}"
    return alert.status.value


def rank_of(alert: Alert) -> str:
    """Say what the gate's policy makes of it."""
    return "blocks" if alert.rank is Action.BLOCK else "warns"
