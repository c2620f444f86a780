"""Alerts as screens show them: which there are, and the runs behind them in a line."""

from typing import Final

from hybridwatch.analysis.alert_timeline import RunVerdict, Timeline
from hybridwatch.analysis.alerts import AlertGroup
from hybridwatch.history.alerts import find_groups, find_timelines
from hybridwatch.history.entry import Entry
from hybridwatch.history.runs import list_contenders
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Cell, Inline, Link
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.sentence import headline

_LONGEST: Final = 160
"""Characters of one line of a list; pages of their own show all."""


def alerts_here(source: ScreenSource) -> tuple[AlertGroup, ...]:
    """Derive every alert of a store, as ``find_groups``.

    Raises:
        TriageError: What people decided cannot be read.
    """
    return find_groups(source.results, source.index, source.checkout(), source.now, source.triage)


def stories_with(run_id: str, source: ScreenSource) -> tuple[Timeline, ...]:
    """Give the timelines in which a run was bad."""
    return find_timelines(source.index, source.checkout()).bad_in.get(run_id, ())


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
    link = Link(
        f"run\N{NO-BREAK SPACE}{run_verdict.run_id}", address("run", run=run_verdict.run_id)
    )
    _, release = list_contenders(source.index).get(run_verdict.run_id, ("", ""))
    return (link, f" of {release}") if release else (link,)
