"""Where the histories of a scenario changed, in a table."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hybridwatch.analysis.change_point import NOT_ONE_COMMIT, HistoryState
from hybridwatch.analysis.difference import commits_between
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.history.lines import Line, find_verdict
from hybridwatch.history.machine_changes import MachineChange
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Column,
    Grade,
    Inline,
    Link,
    Paragraph,
    Section,
    Table,
)
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.figures.lines import describe_change


def change_points(
    drawn: Sequence[tuple[Subject, list[Line], Chart]],
    machines: Sequence[MachineChange],
    source: ScreenSource,
) -> Iterator[Block]:
    """Every change point of what is drawn: confirmed and worse first, the newest of them first.

    No commit is blamed for what a change of the machine explains.
    """
    found = [
        (
            state is HistoryState.SUSPECTED,
            not subject.metric.better.is_worse(point.effect),
            point,
            line,
            subject,
        )
        for subject, lines, _ in drawn
        for line in lines
        for point in line.history.points
        for state in (point.state,)
    ]
    found.sort(key=lambda each: -each[3].levels["started_at"].iloc[each[2].index].value)
    found.sort(key=lambda each: each[:2])
    columns = (
        Column("change", title="Confirmed changes are coloured; a suspected one may be noise yet"),
        Column("metric, build"),
        Column("size", number=True, title="New level against old, with its 95 % interval"),
        Column("first run on the new level", title="And the runs it lies between, with 95 %"),
        Column("what else changed there", wide=True),
    )
    for reason, started_at in _breaks(drawn).items():
        yield Paragraph(
            (
                "New series since ",
                source.ago(started_at),
                f": {reason}. Nothing is compared across.",
            )
        )
    rows = tuple(
        _change(point, line, subject, machines, source) for _, _, point, line, subject in found
    )
    drifts = (
        _drift(drift, line, subject, source)
        for subject, lines, _ in drawn
        for line in lines
        for drift in line.history.drifts
    )
    if rows := (*rows, *drifts):
        yield Section("Where it changed", (Table("Change points", columns, rows),))
    else:
        runs = max((len(line.levels) for _, lines, _ in drawn for line in lines), default=0)
        yield Paragraph(
            f"No change point in what is drawn, up to {plural(runs, 'median')} a line.", quiet=True
        )


def _breaks(drawn: Sequence[tuple[Subject, list[Line], Chart]]) -> Mapping[str, datetime]:
    """Say why series ended in what is drawn, and when the next ones began."""
    return {
        one.reason: one.at.to_pydatetime()
        for _, lines, _ in drawn
        for line in lines
        for one in line.breaks
    }


def _change(
    point: Any,
    line: Line,
    subject: Subject,
    machines: Sequence[MachineChange],
    source: ScreenSource,
) -> tuple[Cell | Inline, ...]:
    at: Any = line.levels.iloc[point.index]
    when = at["started_at"].to_pydatetime()
    worse = "worse" if subject.metric.better.is_worse(point.effect) else "better"
    confirmed = point.state is HistoryState.CONFIRMED
    return (
        Cell(
            Grade(find_verdict(point, subject.metric), worse)
            if confirmed
            else f"suspected {worse}",
            "confirmed" if confirmed else "look again after the next runs",
        ),
        Cell(subject.label, line.title),
        Cell(describe_change(point, line, subject.metric), raw=point.effect),
        Cell(
            Link(at["run"], address("run", run=at["run"])),
            _between(point, line) or source.ago(when),
        ),
        next(
            (one.text for one in machines if one.explains(point, line.levels, subject.metric)),
            _suspects(point, line),
        ),
    )


def _drift(
    drift: Any, line: Line, subject: Subject, source: ScreenSource
) -> tuple[Cell | Inline, ...]:
    first: Any = line.levels.iloc[drift.index]
    worse = "worse" if subject.metric.better.is_worse(drift.effect) else "better"
    return (
        Cell(f"drifts, {worse}", "slowly, not at one run"),
        Cell(subject.label, line.title),
        Cell(numbers.effect(drift.effect, subject.metric.kind), "in all", raw=drift.effect),
        Cell(
            ("about ", Link(first["run"], address("run", run=first["run"]))),
            _between(drift, line) or source.ago(first["started_at"].to_pydatetime()),
        ),
        NOT_ONE_COMMIT,
    )


def _between(found: Any, line: Line) -> str:
    """Between which days it lies with 95 %; empty where that is one run."""
    days = [f"{line.levels['started_at'].iloc[at]:%-d %b}" for at in (found.first, found.last)]
    return f"{days[0]} to {days[1]}, 95 %" if found.first < found.last else ""


def _suspects(point: Any, line: Line) -> Cell:
    """Say what changed between the last run surely on the old level and the first on the new."""
    old: Any = line.levels.iloc[point.first - 1]
    new: Any = line.levels.iloc[point.last]
    steps = [step.text for step in line.steps if point.first <= step.at <= point.last]
    inlines: list[Inline] = ["; ".join(steps) or "release and fixes are the same"]
    if commits := commits_between(old["release"], new["release"]):
        inlines += [" \N{MIDDLE DOT} ", Link(commits.text, commits.url)]
    sides = {"baseline": old, "contender": new}
    both = {role: f"{side['run']}#{side['side']}" for role, side in sides.items()}
    way = Link("everything that differs", address("compare", **both))
    last = f"since run\N{NO-BREAK SPACE}{old['run']} of {old['release']}: "
    return Cell(tuple(inlines), (last, way))
