"""Moments and gaps, drawn into a figure over time that was made without them."""

from datetime import UTC, datetime
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from hybridwatch.reports.figures.base import escaped

MARK: Final = "#D9480F"
"""3:1 on white and on near-black."""
_MACHINE: Final = "#7A7F87"
_SHADE: Final = "rgba(217,72,15,0.12)"
_ROOM: Final = 0.04
_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"


def mark_place(
    figure: go.Figure, x: float | str, colour: str = MARK, dash: str | None = None
) -> None:
    """Draw an upright line at a place of the horizontal axis."""
    rule = {"color": colour, "width": 1.5, "dash": dash}
    figure.add_shape(type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=rule)


def mark_moment(figure: go.Figure, moment: datetime) -> None:
    """Draw an upright line at a moment; the axis is widened to it, where it ends before."""
    _widen(figure, moment)
    mark_place(figure, _written(moment))


def mark_machine(figure: go.Figure, moment: datetime, text: str, *, is_strong: bool) -> bool:
    """Mark where the machine changed, with a text to be pointed at; gives whether it lies inside.

    Args:
        figure: Over time.
        moment: When the first run after the change began.
        text: What changed.
        is_strong: Whether something moved; else there is a small mark at the foot alone.
    """
    axis: Any = figure.layout.xaxis
    first, last = map(pd.Timestamp, axis.range)
    if not first <= pd.Timestamp(moment.astimezone(UTC)).tz_localize(None) <= last:
        return False
    if is_strong:
        mark_place(figure, _written(moment), _MACHINE, "dash")
    figure.add_annotation(
        x=_written(moment),
        y=0,
        yref="paper",
        yanchor="bottom",
        text="the machine changed" if is_strong else "\N{WHITE DIAMOND}",
        hovertext=escaped(text),
        showarrow=False,
        font={"size": 11, "color": _MACHINE},
    )
    return True


def mark_gap(figure: go.Figure, since: datetime, until: datetime, text: str) -> None:
    """Shade the time in which nothing was measured.

    The axis is widened to ``until``, which is now.
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
        text=escaped(text),
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
