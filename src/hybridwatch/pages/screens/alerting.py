"""Alerts as screens show them: which there are, their runs, and what people did, in a line each."""

from collections.abc import Mapping
from typing import Final

from hybridwatch.analysis.alert_decisions import DecisionEntry, TriageAction
from hybridwatch.analysis.alert_timeline import RunVerdict
from hybridwatch.analysis.alerts import Alert, AlertGroup, Status
from hybridwatch.history.alerts import find_groups
from hybridwatch.history.entry import Entry
from hybridwatch.history.runs import list_contenders
from hybridwatch.pages.document import Cell, Inline, Line, When
from hybridwatch.pages.screens.screen import ScreenSource, run_link
from hybridwatch.reports.alert_text import CLOSED
from hybridwatch.reports.sentence import headline

_LONGEST: Final = 160
"""Characters of one line of a list; pages of their own show all."""
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


def alerts_here(source: ScreenSource) -> tuple[AlertGroup, ...]:
    """Derive every alert of a store, as ``find_groups``.

    Raises:
        TriageError: What people decided cannot be read.
    """
    return find_groups(source.results, source.index, source.checkout(), source.now, source.triage)


def engine_message(run_id: str, source: ScreenSource) -> str:
    """Say why an engine failed as the headline of its run does; empty where that is not known."""
    entry = source.entry(run_id)
    if not isinstance(entry, Entry) or entry.report is None:
        return ""
    return shortened(headline(entry.report))


def shortened(text: str) -> str:
    """Cut a text to one line of a list."""
    return text if len(text) <= _LONGEST else text[:_LONGEST].rstrip() + "…"


def since(run_verdict: RunVerdict, source: ScreenSource) -> Cell:
    """Say when a run was, which it was, and of which release the engine was that it measured."""
    when = source.ago(run_verdict.started_at)
    return Cell(when, run_line(run_verdict, source))


def run_line(run_verdict: RunVerdict, source: ScreenSource) -> tuple[Inline, ...]:
    """Name a run and the release of its contender."""
    link = run_link(run_verdict.run_id)
    _, release = list_contenders(source.index).get(run_verdict.run_id, ("", ""))
    return (link, f" of {release}") if release else (link,)


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
