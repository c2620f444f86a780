"""The figure of a run's trials, and what other figures share with it.

Colours are readable on light and on dark ground, and differ for readers who do not see red and
green; the symbol shows the side too.
"""

from collections.abc import Iterable
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.history.trials import SideMedian, Trials, TrialValue
from hybridwatch.metrics import Kind, Metric, Unit
from hybridwatch.reports.figures.base import base_figure, escaped, faint

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
_WIDTH: Final = 0.6
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


def figure_trials(trials: Trials) -> go.Figure:
    """Draw one metric of a run: every trial as a point, the median of a side as a bar.

    Texts are escaped.
    """
    traces: list[dict[str, Any]] = []
    colours = _colour_by_build(trials)
    for level in trials.medians:
        points = [p for p in trials.points if (p.build, p.side) == (level.build, level.side)]
        name = f"{escaped(level.build)} ({SIDES[level.side]})"
        traces.append(_bar(level, colours[level.build], name))
        traces.append(_dots(points, colours[level.build], name, HOVERS[trials.metric.unit]))
    ticks = [0] if trials.points else []
    return base_figure(
        traces,
        title=trials.metric.label(trials.statistic),
        height=_HEIGHT,
        margin={"l": compute_height(trials.metric.unit), "r": 8, "t": 44, "b": 28},
        legend={"orientation": "h", "yanchor": "top", "y": -0.14, "x": 0},
        xaxis={
            "tickmode": "array",
            "tickvals": ticks,
            "ticktext": [f"{trials.started_at:%d %b %H:%M}" for _ in ticks],
            "range": [-_WIDTH, _WIDTH],
            "showgrid": False,
            "zeroline": False,
        },
        yaxis=upright_axis(trials.metric, [point.value for point in trials.points]),
    )


def upright_axis(metric: Metric, values: Iterable[float]) -> dict[str, Any]:
    """Lay out the axis on which values of a metric stand.

    Shifts of a few percent must be seen, so only a count begins at zero. A proportion ends at 100
    %, and a small count has no ticks between whole numbers.
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


def compute_height(unit: Unit) -> int:
    """Give the room for the numbers of an upright axis, in pixels.

    Plotly would find it by itself, and draw everything twice for that.
    """
    return _NUMBERS_AND_UNITS if unit in _SPELT else _NUMBERS


def _colour_by_build(trials: Trials) -> dict[str, str]:
    builds = dict.fromkeys(point.build for point in trials.points)
    return {build: COLOURS[i % len(COLOURS)] for i, build in enumerate(builds)}


def _bar(level: SideMedian, colour: str, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [_shift(level.side)],
        "y": [level.value],
        "mode": "lines+markers",
        "line": {"color": colour, "width": 1.5},
        # A bar as wide as the cloud of points around it.
        "marker": {"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 3}},
        "name": name,
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _dots(points: list[TrialValue], colour: str, name: str, value: str) -> dict[str, Any]:
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


def _places(points: list[TrialValue]) -> list[float]:
    """Spread the trials of a side in their order around its place, so that none hides another."""
    last = max(point.nth for point in points)
    return [
        _shift(point.side) + (_SPREAD * (point.nth / last - 0.5) if last else 0.0)
        for point in points
    ]


def _shift(side: int) -> float:
    return _SIDE_SHIFT if side else -_SIDE_SHIFT
