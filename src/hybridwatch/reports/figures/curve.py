"""The figure of a sweep: throughput per GPU against interactivity, one curve a side, with bands."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.analysis.tradeoff import LoadPoint, SideCurve, Spread
from hybridwatch.reports.figures.base import base_figure, escaped, faint
from hybridwatch.reports.figures.marks import MARK
from hybridwatch.reports.figures.trials import COLOURS, SIDES, SYMBOLS
from hybridwatch.reports.tradeoff_text import KNOBS, describe_interactivity, describe_output, rate

_HEIGHT: Final = 420
_BAND: Final = 0.2
_SHADE: Final = "rgba(128,128,128,0.22)"
_LABELS: Final = ("top right", "bottom left")
"""Where the load stands next to a point of each side, so that equal curves do not hide it."""


def figure_curves(
    sides: Sequence[SideCurve], crossings: Sequence[tuple[float, float]]
) -> go.Figure:
    """Draw one curve a side over the middle of its trials.

    ``crossings`` are the interactivities between which the better side changes. Texts are escaped.
    """
    drawn = list(enumerate(sides))
    first = sides[0]
    return base_figure(
        [draw(at, side, len(sides)) for draw in (_band, _line) for at, side in drawn],
        height=_HEIGHT,
        margin={"l": 72, "r": 12, "t": 12, "b": 92},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0},
        shapes=[*map(_crossing, crossings), *_bounds(first)],
        annotations=list(_bound_names(first)),
        xaxis={
            "title": {
                "text": f"interactivity: {describe_interactivity(first)}",
                "font": {"size": 12},
            },
            "tickformat": ",~g",
        },
        yaxis={
            "title": {"text": f"throughput: {describe_output(first)}", "font": {"size": 12}},
            "tickformat": ",~g",
        },
    )


def _band(at: int, side: SideCurve, of: int) -> dict[str, Any]:
    """The middle trials of every point, joined; lines between points are only for the eye."""
    there, back = side.points, side.points[::-1]
    return {
        "type": "scatter",
        "x": [*(p.interactivity.low for p in there), *(p.interactivity.high for p in back)],
        "y": [*(p.throughput.low for p in there), *(p.throughput.high for p in back)],
        "fill": "toself",
        "fillcolor": faint(COLOURS[at], _BAND),
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "legendgroup": _name(at, side, of),
        "showlegend": False,
    }


def _line(at: int, side: SideCurve, of: int) -> dict[str, Any]:
    name = _name(at, side, of)
    return {
        "type": "scatter",
        "x": [point.interactivity.middle for point in side.points],
        "y": [point.throughput.middle for point in side.points],
        "mode": "lines+markers+text",
        "line": {"color": COLOURS[at], "width": 2},
        "marker": {"symbol": SYMBOLS[at], "size": 9, "color": COLOURS[at]},
        "text": [f"{point.load:g}" for point in side.points],
        "textposition": _LABELS[at],
        "textfont": {"size": 12, "color": COLOURS[at]},
        "name": name,
        "legendgroup": name,
        "customdata": [[_hover(side, point)] for point in side.points],
        "hovertemplate": f"<b>{name}</b><br>%{{customdata[0]}}<extra></extra>",
    }


def _hover(side: SideCurve, point: LoadPoint) -> str:
    lines = [
        f"{point.load:g} {KNOBS.get(side.knob, escaped(side.knob))}",
        f"{_spread(point.interactivity)} {describe_interactivity(side)}",
        f"{_spread(point.throughput)} {describe_output(side)}",
    ]
    if point.goodput is not None:
        lines.append(f"{_spread(point.goodput)} req/s keep the objective")
    if point.joules_per_token is not None:
        lines.append(f"{_spread(point.joules_per_token)} J per token")
    return "<br>".join(lines)


def _spread(found: Spread) -> str:
    return f"{rate(found.middle)} ({rate(found.low)} to {rate(found.high)})"


def _name(at: int, side: SideCurve, of: int) -> str:
    return f"{escaped(side.build)} ({SIDES[at]})" if of > 1 else escaped(side.build)


def _crossing(between: tuple[float, float]) -> dict[str, Any]:
    low, high = between
    edges = {"x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "rect", **edges, "fillcolor": _SHADE, "line": {"width": 0}, "layer": "below"}


def _bounds(side: SideCurve) -> Iterator[dict[str, Any]]:
    """Where a user's tokens come as slowly as the objective allows."""
    if "tpot" in side.slo:
        at, rule = 1 / side.slo["tpot"], {"color": MARK, "width": 1.5, "dash": "dot"}
        yield {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": rule}


def _bound_names(side: SideCurve) -> Iterator[dict[str, Any]]:
    if "tpot" in side.slo:
        yield {
            "x": 1 / side.slo["tpot"],
            "y": 1,
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "top",
            "text": f" TPOT {1000 * side.slo['tpot']:g} ms",
            "showarrow": False,
            "font": {"size": 12, "color": MARK},
        }
