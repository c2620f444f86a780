"""Figures of histories; the only place that knows plotly.

Plotly reads a small HTML dialect in every text it shows, so everything that comes from a record
goes through ``escaped``. Colours are readable on light and on dark ground, and told apart by
readers who do not see red and green; the side is told by the symbol too.
"""

import math
from html import escape
from typing import Final

import plotly.graph_objects as go

from hybridwatch.metric import Unit
from hybridwatch.views.series import Level, Point, Series, label_of, levels_by_build

# Okabe and Ito's palette, lightened or darkened until each has 3:1 against white and near-black.
COLOURS: Final = ("#2383C4", "#D9731A", "#0E9A77", "#B65FA3", "#A08A00", "#6C7A89")
SYMBOLS: Final = ("circle", "diamond")
SIDES: Final = ("baseline", "contender")

_SIDE_SHIFT: Final = 0.13
"""The two sides of a run stand left and right of its place, and their trials spread around it."""
_SPREAD: Final = 0.16
_HEIGHT: Final = 300
_TICKS: Final = 5

AXES: Final[dict[Unit, dict[str, str]]] = {
    Unit.SECONDS: {"tickformat": "~s", "ticksuffix": "s"},
    Unit.TOKENS_PER_SECOND: {"tickformat": ",~g", "ticksuffix": " tok/s"},
    Unit.REQUESTS_PER_SECOND: {"tickformat": ",~g", "ticksuffix": " req/s"},
    Unit.STEPS_PER_SECOND: {"tickformat": ",~g", "ticksuffix": " step/s"},
    Unit.COUNT: {"tickformat": ",~g"},
    Unit.RATIO: {"tickformat": ".0%"},
}
HOVERS: Final[dict[Unit, str]] = {
    Unit.SECONDS: "%{y:.4s}s",
    Unit.TOKENS_PER_SECOND: "%{y:,.4~r} tok/s",
    Unit.REQUESTS_PER_SECOND: "%{y:,.4~r} req/s",
    Unit.STEPS_PER_SECOND: "%{y:,.4~r} step/s",
    Unit.COUNT: "%{y:,.6~r}",
    Unit.RATIO: "%{y:.1%}",
}


def figure_history(series: Series) -> go.Figure:
    """Draw one metric over runs in time: every trial as a point, the medians as a line.

    Args:
        series: The history.

    Returns:
        A figure whose texts are escaped; colours of ground and type are left to the page.
    """
    figure = go.Figure()
    colours = _colour_by_build(series)
    for (build, side), levels in levels_by_build(series).items():
        points = [p for p in series.points if (p.build, p.side) == (build, side)]
        name = f"{escaped(build)} ({SIDES[side]})"
        figure.add_trace(_line(levels, colours[build], name))
        figure.add_trace(_dots(points, colours[build], name, HOVERS[series.metric.unit]))
    _lay_out(figure, series)
    return figure


def escaped(text: str) -> str:
    """Make a text harmless for plotly."""
    # Plotly decodes &lt; and &amp; but shows &quot; as it stands; quotes are harmless in text.
    return escape(text, quote=False)


def _colour_by_build(series: Series) -> dict[str, str]:
    builds = dict.fromkeys(point.build for point in series.points)
    return {build: COLOURS[i % len(COLOURS)] for i, build in enumerate(builds)}


def _line(levels: list[Level], colour: str, name: str) -> go.Scatter:
    return go.Scatter(
        x=[level.position + _shift(level.side) for level in levels],
        y=[level.value for level in levels],
        mode="lines+markers",
        line={"color": colour, "width": 1.5},
        # A bar as wide as the cloud of points around it.
        marker={"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 3}},
        name=name,
        legendgroup=name,
        showlegend=False,
        hoverinfo="skip",
    )


def _dots(points: list[Point], colour: str, name: str, value: str) -> go.Scatter:
    return go.Scatter(
        x=_places(points),
        y=[point.value for point in points],
        mode="markers",
        marker={
            "symbol": SYMBOLS[points[0].side],
            "size": 8,
            "color": colour,
            "opacity": 0.75,
            "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"},
        },
        name=name,
        legendgroup=name,
        customdata=[
            [
                escaped(point.record),
                escaped(point.revision),
                escaped(point.testbed),
                f"{point.started_at:%Y-%m-%d %H:%M} UTC",
                str(point.nth + 1),
            ]
            for point in points
        ],
        hovertemplate=(
            f"<b>{value}</b>, trial %{{customdata[4]}}<br>{name}<br>%{{customdata[3]}}<br>"
            "record %{customdata[0]}<br>harness commit %{customdata[1]}<br>"
            "testbed %{customdata[2]}<extra></extra>"
        ),
    )


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


def _lay_out(figure: go.Figure, series: Series) -> None:
    figure.update_layout(
        height=_HEIGHT,
        title={"text": escaped(label_of(series.metric, series.statistic)), "font": {"size": 15}},
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -0.14, "x": 0},
        hoverlabel={"align": "left", "namelength": -1},
    )
    ticks = range(0, len(series.runs), max(1, math.ceil(len(series.runs) / _TICKS)))
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(ticks),
        ticktext=[f"{series.runs[i]:%d %b %H:%M}" for i in ticks],
        range=[-0.6, max(len(series.runs) - 0.4, 0.6)],
        showgrid=False,
    )
    # Shifts of a few percent must be seen, so only what may be zero is drawn from zero.
    from_zero = series.metric.unit is Unit.COUNT
    figure.update_yaxes(
        rangemode="tozero" if from_zero else "normal", automargin=True, **AXES[series.metric.unit]
    )
