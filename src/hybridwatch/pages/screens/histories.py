"""Histories: their charts, where they changed, and machines that changed under both builds."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from hybridwatch.analysis.alerts import Alert
from hybridwatch.analysis.change_point import NOT_ONE_COMMIT, HistoryState
from hybridwatch.analysis.difference import commits_between
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.database.queries import Index
from hybridwatch.history.lines import Line, find_verdict
from hybridwatch.history.machine_changes import MachineChange, changes_since, machine_changes
from hybridwatch.metrics import Metric
from hybridwatch.pages.address import address
from hybridwatch.pages.document import (
    Block,
    Cell,
    Chart,
    Column,
    Columns,
    Folded,
    Grade,
    Inline,
    Link,
    Notice,
    Paragraph,
    Row,
    Section,
    Table,
)
from hybridwatch.pages.screens.screen import ScreenSource
from hybridwatch.reports.figures.lines import describe_change, figure_lines, find_fitted
from hybridwatch.reports.figures.marks import mark_machine
from hybridwatch.reports.sentence import with_rest

_RECENT: Final = timedelta(days=7)
"""How long a change is named on every list; then only its marks show it."""
_NAMED: Final = 3
_NIGHT: Final = timedelta(hours=20)
_NOT_THE_CODE: Final = "No commit is to blame for this. What both builds are measured on is another"
_HOW_TO_READ: Final = (
    "A line joins medians of one line of builds; the band is where each median lies with 95 % "
    "confidence (all trials where there are fewer than 6). Dots are trials: where there are "
    "many, every k-th of each run and always its lowest and highest; of very many runs those "
    "of the last. A filled triangle is a confirmed change point, an open one a suspected; the "
    "shade around it holds the true moment with 95 %, and a wide shade is a drift. A thin "
    "cross marks a gap: a run is missing, or had no such value. Dotted rules are where a "
    "build's release or fixes changed. Where the scenario's definition changed a new series "
    "begins: no line and no change point crosses it."
)
_IN_TURN: Final = (
    "Both builds of the run were measured on it, one in turn with the other, so what differs "
    "between them is not the machine's."
)


def build_charts(drawn: Sequence[tuple[Subject, list[Line], Chart]]) -> Iterator[Block]:
    """Lay out charts of metrics with at least one line, two side by side, and how to read them."""
    if not drawn:
        yield Notice("Nothing to draw: these builds have none of these metrics", quiet=True)
        return
    parts: list[tuple[Block, ...]] = [
        (Section(subject.label, (chart, *_doubts(lines))),) for subject, lines, chart in drawn
    ]
    first, *others = parts
    rows = [others[at : at + 2] for at in range(1, len(others), 2)]
    second = [(Folded("", part, on_phone=True),) for part in others[:1]]
    yield Columns((first, *second))
    every = tuple(Columns(tuple(row)) for row in rows)
    yield Folded(f"All {len(parts)} charts", every, on_phone=True)
    yield Folded("How to read the charts", (Paragraph(_HOW_TO_READ, quiet=True),))


def _doubts(lines: Sequence[Line]) -> Iterator[Paragraph]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        for doubt in line.history.doubts if line.is_long_enough else ():
            names[doubt].append(line.title)
    for doubt, held in names.items():
        yield Paragraph(f"{', '.join(held)}: {doubt}", quiet=True)


def build_chart(subject: Subject, lines: Sequence[Line], scenario: str) -> Chart:
    """Draw a metric with at least one line; files are named by the scenario."""
    metric = subject.metric
    texts = [_line_text(line, metric) for line in lines]
    if find_fitted(lines) is not lines:
        texts.append("The ended definition is far from these values: drag the chart to see it.")
    return Chart(
        f"{scenario} {subject.label}",
        figure_lines(lines, metric),
        " ".join(texts),
        _data(lines),
        opens_runs=True,
    )


def _line_text(line: Line, metric: Metric) -> str:
    last = numbers.value(float(line.levels["value"].iloc[-1]), metric)
    states = [point.state for point in line.history.points]
    counted = [
        plural(states.count(state), f"{state.value} change")
        for state in HistoryState
        if state in states
    ]
    drifts = len(line.history.drifts)
    counted += [plural(drifts, "drift")] if drifts else []
    nothing = "no change point" if line.is_long_enough else "too few to look for changes"
    return (
        f"{line.title}: {plural(len(line.levels), 'median')}, the last {last}, "
        f"{' and '.join(counted) or nothing}."
    )


def _data(lines: Sequence[Line]) -> Mapping[str, Sequence[object]]:
    """What is drawn, a row for each trial, with the median and band of its side."""
    columns = ("run", "started_at", "build", "release", "side", "trial", "value", "median")
    more = ("low", "high", "n", "record", "revision", "testbed")
    table: dict[str, list[object]] = {"line": []}
    for line in lines:
        table["line"] += [line.title] * len(line.points)
        for name in (*columns, *more):
            table.setdefault(name, []).extend(line.points[name].tolist())
    return table


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
        "metric, build",
        Column("size", number=True, title="New level against old, with its 95 % interval"),
        Column("first run on the new level", title="And the runs it lies between, with 95 %"),
        Column("what else changed there", wide=True),
    )
    for reason, started_at in _breaks(drawn).items():
        rest = f": {reason}. Nothing is compared across."
        yield Paragraph(("New series since ", source.ago(started_at), rest))
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
) -> Row:
    at: Any = line.levels.iloc[point.index]
    when = at["started_at"].to_pydatetime()
    worse = "worse" if subject.metric.better.is_worse(point.effect) else "better"
    confirmed = point.state is HistoryState.CONFIRMED
    grade = Grade(find_verdict(point, subject.metric), worse)
    explained = (one.text for one in machines if one.explains(point, line.levels, subject.metric))
    way = Link(at["run"], address("run", run=at["run"]))
    return (
        Cell(grade, "confirmed")
        if confirmed
        else Cell(f"suspected {worse}", "look again after the next runs"),
        Cell(subject.label, line.title),
        Cell(describe_change(point, line, subject.metric), raw=point.effect),
        Cell(way, _between(point, line) or source.ago(when)),
        next(explained, None) or _suspects(point, line),
    )


def _drift(drift: Any, line: Line, subject: Subject, source: ScreenSource) -> Row:
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
    if len(steps) > _NAMED:
        steps = [steps[0], f"{len(steps) - 2} more", steps[-1]]
    inlines: list[Inline] = ["; ".join(steps) or "release and fixes are the same"]
    if commits := commits_between(old["release"], new["release"]):
        inlines += [" \N{MIDDLE DOT} ", Link(commits.text, commits.url)]
    sides = {"baseline": old, "contender": new}
    both = {role: f"{side['run']}#{side['side']}" for role, side in sides.items()}
    way = Link("everything that differs", address("compare", **both))
    last = f"since run\N{NO-BREAK SPACE}{old['run']} of {old['release']}: "
    return Cell(tuple(inlines), (last, way))


def machine_notice(source: ScreenSource, since: datetime) -> Iterator[Notice]:
    """Say which machines changed since a moment, or within the last week; nothing without any."""
    found = changes_since(source.index, min(since, source.now - _RECENT))
    if found:
        lines = with_rest([f"{one.testbed}: {one.text}." for one in found], _NAMED)
        lines.append(f"{_NOT_THE_CODE}: the unchanged baseline moved with the contender.")
        yield Notice("The machine changed, and not the code", tuple(lines))


def machine_notices(alert: Alert, source: ScreenSource) -> tuple[Notice, ...]:
    """Say that the machine changed on the night on which an alert opened; else nothing."""
    opened, title = alert.opened_by.started_at, "The machine changed on that night, too"
    return tuple(
        Notice(title, (_sentence(one), _IN_TURN), quiet=True)
        for one in changes_on(alert.subject.testbed, source.index)
        if one.slower and one.before < opened <= one.at + _NIGHT
    )


def changes_on(testbed: str, index: Index) -> tuple[MachineChange, ...]:
    """Give every change of a testbed's machine, also those that moved nothing."""
    return tuple(one for one in machine_changes(index) if one.testbed == testbed)


def with_machine(chart: Chart, changes: Sequence[MachineChange]) -> Chart:
    """Mark in a chart over time where the machine changed."""
    sentences = [
        f" {_sentence(one)}"
        for one in changes
        if mark_machine(chart.figure, one.at, one.text, is_strong=bool(one.slower))
    ]
    return replace(chart, description=chart.description + "".join(sentences))


def _sentence(change: MachineChange) -> str:
    return f"{change.text[:1].upper()}{change.text[1:]}."
