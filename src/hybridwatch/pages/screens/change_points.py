"""Where the histories of a scenario changed, in a table."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hybridwatch.analysis.change_point import State
from hybridwatch.analysis.culprit import commits_between
from hybridwatch.figures.lines import change_of
from hybridwatch.history.lines import Line, verdict_of
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
from hybridwatch.pages.screens.histories import Subject
from hybridwatch.pages.screens.screen import Source
from hybridwatch.report.sentence import plural


def change_points(
    drawn: Sequence[tuple[Subject, list[Line], Chart]], source: Source
) -> Iterator[Block]:
    """Every change point of what is drawn: confirmed and worse first, the newest of them first."""
    found = [
        (
            state is State.SUSPECTED,
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
        Column("first run on the new level"),
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
    rows = tuple(_change(point, line, subject, source) for _, _, point, line, subject in found)
    if rows:
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


def _change(point: Any, line: Line, subject: Subject, source: Source) -> tuple[Cell | Inline, ...]:
    at: Any = line.levels.iloc[point.index]
    when = at["started_at"].to_pydatetime()
    worse = "worse" if subject.metric.better.is_worse(point.effect) else "better"
    confirmed = point.state is State.CONFIRMED
    return (
        Cell(
            Grade(verdict_of(point, subject.metric), worse) if confirmed else f"suspected {worse}",
            "confirmed" if confirmed else "look again after the next runs",
        ),
        Cell(subject.label, line.title),
        Cell(change_of(point, line, subject.metric), raw=point.effect),
        Cell(
            Link(at["run"], address("run", run=at["run"])),
            source.ago(when),
        ),
        _suspects(point, line),
    )


def _suspects(point: Any, line: Line) -> Cell:
    """Say what changed between the last run on the old level and the first on the new one."""
    old: Any = line.levels.iloc[point.index - 1]
    new: Any = line.levels.iloc[point.index]
    step = next((step.text for step in line.steps if step.at == point.index), "")
    inlines: list[Inline] = [step or "release and fixes are the same"]
    if commits := commits_between(old["release"], new["release"]):
        inlines += [" \N{MIDDLE DOT} ", Link(commits.text, commits.url)]
    sides = {"baseline": old, "contender": new}
    both = {role: f"{side['run']}#{side['side']}" for role, side in sides.items()}
    way = Link("everything that differs", address("compare", **both))
    last = f"since run\N{NO-BREAK SPACE}{old['run']} of {old['release']}: "
    return Cell(tuple(inlines), (last, way))
