"""Moments and gaps, drawn into a figure over time that was made without them."""

from datetime import UTC, datetime
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from hybridwatch.figures.base import escaped

MARK: Final = "#D9480F"
"""3:1 on white and on near-black."""
_SHADE: Final = "rgba(217,72,15,0.12)"
_ROOM: Final = 0.04
_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"


def mark_place(figure: go.Figure, x: float | str) -> None:
    """Draw an upright line at a place of the horizontal axis."""
    rule = {"color": MARK, "width": 1.5}
    figure.add_shape(type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=rule)


def mark_moment(figure: go.Figure, moment: datetime) -> None:
    """Draw an upright line at a moment; the axis is widened to it, where it ends before."""
    _widen(figure, moment)
    mark_place(figure, _written(moment))


def mark_gap(figure: go.Figure, since: datetime, until: datetime, said: str) -> None:
    """Shade the time in which nothing was measured.

    Args:
        figure: Over time.
        since: When the last measurement was.
        until: Now; the axis is widened to it.
        said: What to write there; plain text.
    """
    _widen(figure, until)
    figure.add_shape(
        type="rect",
        x0=_written(since),
        x1=_written(until),
        y0=0,
        y1=1,
        yref="paper",
        fillcolor=_SHADE,
        line={"width": 0},
        layer="below",
    )
    figure.add_annotation(
        x=_written(until),
        y=0.98,
        yref="paper",
        xanchor="right",
        yanchor="top",
        text=escaped(said),
        showarrow=False,
        font={"size": 12, "color": MARK},
    )


def _widen(figure: go.Figure, moment: datetime) -> None:
    axis: Any = figure.layout.xaxis
    first, last = map(pd.Timestamp, axis.range)
    naive = pd.Timestamp(moment.astimezone(UTC)).tz_localize(None)
    if naive >= last:
        edge = naive + (naive - first) * _ROOM
        axis.range = [axis.range[0], edge.strftime(_SECONDS)]


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_SECONDS)
