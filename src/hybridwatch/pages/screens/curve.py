"""The curves of a sweep: in words, drawn, and every load in a table."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hybridwatch.analysis.crossing import build_curve
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.tradeoff import LoadPoint, SideCurve, Spread, Tradeoff
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.analysis.wording.numbers import ABSENT
from hybridwatch.pages.document import Block, Cell, Chart, Column, Paragraph, Section, Table
from hybridwatch.records.run import Run
from hybridwatch.reports.figures.curve import figure_curves
from hybridwatch.reports.figures.trials import SIDES
from hybridwatch.reports.tradeoff_text import (
    KNOBS,
    describe_interactivity,
    describe_objective,
    describe_output,
    rate,
    tradeoff_lines,
)

_TITLE: Final = "Throughput against interactivity"
_LOADS: Final = "Every load"
_HINT: Final = (
    "Up and to the right is better. A point is the median of the trials under one load, which "
    "stands beside it; a band holds the middle four fifths of them."
)
_CROSSED: Final = " The curves cross in the grey strip."

_Of = Callable[[LoadPoint], Spread | None]


def curve_blocks(run: Run, found: Tradeoff | None) -> Iterator[Block]:
    """Show the curves of a run, of one build too; nothing of a run that swept no loads."""
    alone = build_curve(OneSide(run, 0)) if found is None and len(run.builds) == 1 else None
    if alone is not None:
        yield _section((alone,), (), ())
    elif found is not None:
        yield tradeoff_section(found)


def tradeoff_section(found: Tradeoff) -> Section:
    """Show two curves side by side."""
    sides = found.baseline, found.contender
    return _section(sides, tradeoff_lines(found), found.crossings)


def _section(
    sides: Sequence[SideCurve], lines: Sequence[str], crossings: Sequence[tuple[float, float]]
) -> Section:
    hint = _HINT + (_CROSSED if crossings else "")
    if objective := describe_objective(sides[0]):
        hint += f" Goodput counts the requests with {objective}."
    return Section(
        _TITLE,
        (
            *(Paragraph(line) for line in lines),
            Paragraph(hint, quiet=True),
            _chart(sides, crossings),
            _table(sides),
        ),
    )


def _chart(sides: Sequence[SideCurve], crossings: Sequence[tuple[float, float]]) -> Chart:
    rows = [(side, point) for side in sides for point in side.points]
    ends = "; ".join(f"{side.build} from {_end(side, 0)} to {_end(side, -1)}" for side in sides)
    return Chart(
        _TITLE,
        figure_curves(sides, crossings),
        f"{plural(len(sides[0].points), 'load')}: {ends}.",
        {
            "build": [side.build for side, _ in rows],
            sides[0].knob: [point.load for _, point in rows],
            "trials": [side.trials for side, _ in rows],
            **_columns("interactivity", [point.interactivity for _, point in rows]),
            **_columns("throughput", [point.throughput for _, point in rows]),
            **_columns("goodput", [point.goodput for _, point in rows]),
            **_columns("joules per token", [point.joules_per_token for _, point in rows]),
        },
    )


def _end(side: SideCurve, at: int) -> str:
    point = side.points[at]
    throughput, interactivity = point.throughput.middle, point.interactivity.middle
    given, seen = describe_output(side), describe_interactivity(side)
    return f"{rate(throughput)} {given} at {rate(interactivity)} {seen}"


def _columns(name: str, spreads: Sequence[Spread | None]) -> dict[str, Sequence[object]]:
    return {
        name: [None if one is None else one.middle for one in spreads],
        f"{name} low": [None if one is None else one.low for one in spreads],
        f"{name} high": [None if one is None else one.high for one in spreads],
    }


def _table(sides: Sequence[SideCurve]) -> Table:
    known = list(_known(sides))
    headings = [KNOBS.get(sides[0].knob, sides[0].knob), "side", *(name for name, _ in known)]
    columns = tuple(Column(name, number=name != "side") for name in headings)
    loads = sorted({point.load for side in sides for point in side.points})
    rows = [
        (
            Cell(f"{load:g}", raw=load),
            SIDES[at],
            *(_cell(spread_of(point)) for _, spread_of in known),
        )
        for load in loads
        for at, side in enumerate(sides)
        for point in side.points
        if point.load == load
    ]
    return Table(_LOADS, columns, tuple(rows))


def _known(sides: Sequence[SideCurve]) -> Iterator[tuple[str, _Of]]:
    """Name what is known of the points, with its unit; what no trial gives has no column."""
    first = sides[0]
    points = [point for side in sides for point in side.points]
    yield describe_interactivity(first), lambda point: point.interactivity
    yield describe_output(first), lambda point: point.throughput
    if any(point.goodput is not None for point in points):
        yield "goodput, req/s", lambda point: point.goodput
    if any(point.joules_per_token is not None for point in points):
        yield "J per token", lambda point: point.joules_per_token


def _cell(found: Spread | None) -> Cell:
    if found is None:
        return Cell(ABSENT)
    return Cell(
        rate(found.middle), raw=found.middle, title=f"{rate(found.low)} to {rate(found.high)}"
    )
