"""Machines that changed under both builds, shown beside regressions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hybridwatch.analysis.alerts import Alert
from hybridwatch.database.queries import Index
from hybridwatch.history.machine_changes import MachineChange, changes_since, machine_changes
from hybridwatch.pages.document import Chart, FieldKind, Line, Notice
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.figures.marks import mark_machine

_RECENT: Final = timedelta(days=7)
"""How long a change is named on every list; then only its marks show it."""
_NAMED: Final = 3
_NIGHT: Final = timedelta(hours=20)
_NOT_THE_CODE: Final = "No commit is to blame for this. What both builds are measured on is another"
_BESIDE: Final = (
    "Both builds of the run were measured on it, one in turn with the other, so what differs "
    "between them is not the machine's."
)


def machine_notice(source: ScreenSource, since: datetime) -> Iterator[Notice]:
    """Say which machines changed since a moment, or within the last week; nothing without any."""
    found = changes_since(source.index, min(since, source.now - _RECENT))
    if found:
        lines: list[Line] = [f"{one.testbed}: {one.text}." for one in found[:_NAMED]]
        lines += [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
        lines.append(f"{_NOT_THE_CODE}: the unchanged baseline moved with the contender.")
        yield Notice(FieldKind.LOUD, "The machine changed, and not the code", tuple(lines))


def notice_beside(alert: Alert, source: ScreenSource) -> Iterator[Notice]:
    """Say that the machine changed on the night on which an alert opened."""
    opened = alert.opened_by.started_at
    for one in changes_on(alert.subject.testbed, source.index):
        if one.slower and one.before < opened <= one.at + _NIGHT:
            lines = (_sentence(one), _BESIDE)
            yield Notice(FieldKind.QUIET, "The machine changed on that night, too", lines)


def changes_on(testbed: str, index: Index) -> tuple[MachineChange, ...]:
    """Give every change of a testbed's machine, also those that moved nothing."""
    return tuple(one for one in machine_changes(index) if one.testbed == testbed)


def with_machine(chart: Chart, changes: Sequence[MachineChange]) -> Chart:
    """Mark in a chart over time where the machine changed."""
    said = [
        f" {_sentence(one)}"
        for one in changes
        if mark_machine(chart.figure, one.at, one.text, is_strong=bool(one.slower))
    ]
    return replace(chart, description=chart.description + "".join(said)) if said else chart


def _sentence(change: MachineChange) -> str:
    return f"{change.text[:1].upper()}{change.text[1:]}."
