"""Figures of a run beside those before it, and what other figures share with them.

Colours are readable on light and on dark ground, and told apart by readers who do not see red and
green; the side is told by the symbol too.
"""

import math
from collections.abc import Iterable
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.figures.base import base_figure, escaped, faint
from hybridwatch.history.series import Level, Point, Series, label_of, levels_by_build
from hybridwatch.metric import Kind, Metric, Unit

# Okabe and Ito's palette, lightened or darkened until each has 3:1 against white and near-black.
COLOURS: Final = ("#2383C4", "#D9731A", "#0E9A77", "#B65FA3", "#A08A00", "#6C7A89")
SYMBOLS: Final = ("circle", "diamond")
SIDES: Final = ("baseline", "contender")

_NUMBERS: Final = 72
_NUMBERS_AND_UNITS: Final = 92
_SPELT: Final = frozenset({Unit.TOKENS_PER_SECOND, Unit.REQUESTS_PER_SECOND, Unit.STEPS_PER_SECOND})
_SIDE_SHIFT: Final = 0.13
"""The two sides of a run stand left and right of its place, and their trials spread around it."""
_SPREAD: Final = 0.16
_HEIGHT: Final = 300
_TICKS: Final = 5
_TRIAL: Final = 0.75
_ROOM: Final = 0.03
"""Room for a whole point beyond the last that a proportion can be."""
_SMALL: Final = 5
"""Counts up to which an axis has a tick for each."""

_AXES: Final[dict[Unit, dict[str, str]]] = {
    Unit.SECONDS: {"tickformat": "~s", "ticksuffix": "s"},
    Unit.TOKENS_PER_SECOND: {"tickformat": ",~g", "ticksuffix": " tok/s"},
    Unit.REQUESTS_PER_SECOND: {"tickformat": ",~g", "ticksuffix": " req/s"},
    Unit.STEPS_PER_SECOND: {"tickformat": ",~g", "ticksuffix": " step/s"},
    Unit.BYTES: {"tickformat": "~s", "ticksuffix": "B"},
    Unit.COUNT: {"tickformat": ",~g"},
    Unit.RATIO: {"tickformat": ".0%"},
}
HOVERS: Final[dict[Unit, str]] = {
    Unit.SECONDS: "%{y:.4s}s",
    Unit.TOKENS_PER_SECOND: "%{y:,.4~r} tok/s",
    Unit.REQUESTS_PER_SECOND: "%{y:,.4~r} req/s",
    Unit.STEPS_PER_SECOND: "%{y:,.4~r} step/s",
    Unit.BYTES: "%{y:.4s}B",
    Unit.COUNT: "%{y:,.6~r}",
    Unit.RATIO: "%{y:.1%}",
}


def figure_history(series: Series) -> go.Figure:
    """Draw one metric over runs in time: every trial as a point, the medians as a line.

    Args:
        series: The history.

    Returns:
        A figure whose texts are escaped.
    """
    traces: list[dict[str, Any]] = []
    colours = _colour_by_build(series)
    for (build, side), levels in levels_by_build(series).items():
        points = [p for p in series.points if (p.build, p.side) == (build, side)]
        name = f"{escaped(build)} ({SIDES[side]})"
        traces.append(_line(levels, colours[build], name))
        traces.append(_dots(points, colours[build], name, HOVERS[series.metric.unit]))
    ticks = range(0, len(series.runs), max(1, math.ceil(len(series.runs) / _TICKS)))
    return base_figure(
        traces,
        title=label_of(series.metric, series.statistic),
        height=_HEIGHT,
        margin={"l": room_of(series.metric.unit), "r": 8, "t": 44, "b": 28},
        legend={"orientation": "h", "yanchor": "top", "y": -0.14, "x": 0},
        xaxis={
            "tickmode": "array",
            "tickvals": list(ticks),
            "ticktext": [f"{series.runs[i]:%d %b %H:%M}" for i in ticks],
            "range": [-0.6, max(len(series.runs) - 0.4, 0.6)],
            "showgrid": False,
            "zeroline": False,
        },
        yaxis=upright_axis(series.metric, [point.value for point in series.points]),
    )


def upright_axis(metric: Metric, values: Iterable[float]) -> dict[str, Any]:
    """Lay out the axis on which values of a metric stand.

    Args:
        metric: What was measured.
        values: All that is drawn.

    Returns:
        As plotly takes it. Shifts of a few percent must be seen, so only a count begins at zero.
        A proportion ends at 100 %, and a small count has no ticks between whole numbers.
    """
    axis: dict[str, Any] = dict(_AXES[metric.unit])
    if metric.kind is Kind.PROPORTION:
        return {**axis, "autorangeoptions": {"clipmin": -_ROOM, "clipmax": 1 + _ROOM}}
    if metric.unit is not Unit.COUNT:
        return axis
    axis["rangemode"] = "tozero"
    drawn = list(values)
    if max(drawn, default=0) <= _SMALL and all(value == int(value) for value in drawn):
        return {**axis, "dtick": 1, "autorangeoptions": {"include": 1}}
    return axis


def room_of(unit: Unit) -> int:
    """Give the room for the numbers of an upright axis, in pixels.

    Plotly would find it by itself, and draw everything twice for that.
    """
    return _NUMBERS_AND_UNITS if unit in _SPELT else _NUMBERS


def _colour_by_build(series: Series) -> dict[str, str]:
    builds = dict.fromkeys(point.build for point in series.points)
    return {build: COLOURS[i % len(COLOURS)] for i, build in enumerate(builds)}


def _line(levels: list[Level], colour: str, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [level.position + _shift(level.side) for level in levels],
        "y": [level.value for level in levels],
        "mode": "lines+markers",
        "line": {"color": colour, "width": 1.5},
        # A bar as wide as the cloud of points around it.
        "marker": {"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 3}},
        "name": name,
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _dots(points: list[Point], colour: str, name: str, value: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": _places(points),
        "y": [point.value for point in points],
        "mode": "markers",
        "marker": {
            "symbol": SYMBOLS[points[0].side],
            "size": 8,
            "color": faint(colour, _TRIAL),
            "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"},
        },
        "name": name,
        "legendgroup": name,
        "customdata": [
            [
                escaped(point.record),
                escaped(point.revision),
                escaped(point.testbed),
                f"{point.started_at:%Y-%m-%d %H:%M} UTC",
                str(point.nth + 1),
            ]
            for point in points
        ],
        "hovertemplate": (
            f"<b>{value}</b>, trial %{{customdata[4]}}<br>{name}<br>%{{customdata[3]}}<br>"
            "record %{customdata[0]}<br>harness commit %{customdata[1]}<br>"
            "testbed %{customdata[2]}<extra></extra>"
        ),
    }


def _places(points: list[Point]) -> list[float]:
    """Spread a run's trials in their order around its place, so that none hides another."""
    last: dict[int, int] = {}
    for point in points:
        last[point.position] = max(last.get(point.position, 0), point.nth)
    return [
        point.position
        + _shift(point.side)
        + (_SPREAD * (point.nth / last[point.position] - 0.5) if last[point.position] else 0.0)
        for point in points
    ]


def _shift(side: int) -> float:
    return _SIDE_SHIFT if side else -_SIDE_SHIFT
