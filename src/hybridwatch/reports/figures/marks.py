"""What is drawn into a finished figure over time: moments, gaps, new definitions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from hybridwatch.history.lines import Line
from hybridwatch.reports.figures.base import escaped, span

_NARROWEST: Final = 280
"""Pixels between the upright edges of a figure on a phone; a figure does not know its width."""
_LETTER: Final = 6.5
"""Pixels that a letter of a label takes on average, in the size that labels have."""
_BETWEEN: Final = 10
_MARGIN: Final = 8
"""Pixels to the right of the right edge."""
_SIZE: Final = 11
_FEW: Final = 12
"""Rules up to which they are drawn strongly; more would be louder than what they explain."""
_STRONG: Final = 0.7
_FAINT: Final = 0.3
AXIS: Final[dict[str, Any]] = {
    "overlaying": "y",
    "range": [0, 1],
    "fixedrange": True,
    "visible": False,
}
"""Layout of ``yaxis2``, on which the rules go from bottom to top."""
MARK: Final = "#D9480F"
"""3:1 on white and on near-black."""
_MACHINE: Final = "#7A7F87"
_SHADE: Final = "rgba(217,72,15,0.12)"
_ROOM: Final = 0.04
_MOST_GAP: Final = 0.25
"""Share of the width before it, up to which a gap at the end is drawn."""
_ANY_GAP: Final = timedelta(days=7)
"""Up to which it always is."""
_NIGHT: Final = re.compile(r"\.dev\d+")
_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True, slots=True)
class Mark:
    """When the first run of a new engine began, in a word why, and a line for each change."""

    at: pd.Timestamp
    label: str
    text: str
    run: str


def build_marks(lines: Sequence[Line]) -> list[Mark]:
    """List the moments at which a line got another engine or began again, oldest first."""
    found: dict[pd.Timestamp, list[tuple[str, str, str]]] = {}
    for line in lines:
        started, runs = line.levels["started_at"], line.levels["run"]
        for step in line.steps:
            release = _release(step.release)
            if release == _release(line.levels["release"].iloc[step.at - 1]):
                release = ""  # another night's code on the way to one release
            if not (release or step.fixes):
                continue
            change = (release or "fixes", step.text, str(runs.iloc[step.at]))
            found.setdefault(started.iloc[step.at], []).append(change)
        for one in line.breaks:
            found.setdefault(one.at, []).append(
                ("new series", f"new series: {one.reason}", one.run)
            )
    return [_mark(at, found[at]) for at in sorted(found)]


def _mark(at: pd.Timestamp, changes: Sequence[tuple[str, str, str]]) -> Mark:
    labels, texts, runs = zip(*changes, strict=True)
    return Mark(at, ", ".join(dict.fromkeys(labels)), "\n".join(dict.fromkeys(texts)), runs[0])


def rules(marks: Sequence[Mark]) -> dict[str, Any]:
    """Draw a rule at every mark, as one trace of ``yaxis2`` that names them on hover."""
    alpha = _STRONG if len(marks) <= _FEW else _FAINT
    return {
        "type": "scatter",
        # A line of its own for each: what is missing parts it from the next.
        "x": [x for mark in marks for x in (_x(mark), _x(mark), None)],
        "y": [0, 1, None] * len(marks),
        "yaxis": "y2",
        "mode": "lines",
        "line": {"color": f"rgba(128,128,128,{alpha})", "width": 1, "dash": "dot"},
        "text": [_lines(mark.text) for mark in marks for _ in range(3)],
        "customdata": [(mark.run,) for mark in marks for _ in range(3)],
        "hovertemplate": "%{text}<br>%{x|%Y-%m-%d %H:%M} UTC<extra></extra>",
        "showlegend": False,
    }


def labels(
    marks: Sequence[Mark], first: pd.Timestamp, last: pd.Timestamp
) -> Iterator[dict[str, Any]]:
    """Write the names of the marks that fit above the figure, the newest first."""
    places = [(mark.at - first) / (last - first) for mark in marks]
    for nth in fitting(places, [mark.label for mark in marks], movable=True):
        mark = marks[nth]
        yield {
            "x": _x(mark),
            "xanchor": "right" if _sticks_out(places[nth], mark.label) else "center",
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            "text": escaped(mark.label),
            "hovertext": _lines(mark.text),
            "showarrow": False,
            "font": {"size": _SIZE},
        }


def fitting(places: Sequence[float], names: Sequence[str], *, movable: bool = False) -> list[int]:
    """Choose, in order, which names are written next to each other without one touching another.

    ``places`` are where the middle of each name is, from 0, the left edge, to 1; in order. Of two
    that do not fit, the later one stays. If ``movable``, a name that would stick out to the right
    may end at its place instead, and one to the left may stick out; else they are left out.
    """
    chosen: list[int] = []
    free = float("inf")
    for nth in range(len(places) - 1, -1, -1):
        width = _LETTER * len(names[nth])
        right = places[nth] * _NARROWEST + width / 2
        sticks_out = _sticks_out(places[nth], names[nth])
        if movable and sticks_out:
            right = places[nth] * _NARROWEST
        elif not movable and (sticks_out or right - width < -_MARGIN):
            continue
        if right + _BETWEEN <= free:
            chosen.append(nth)
            free = right - width
    return chosen[::-1]


def short(release: str) -> str:
    """Name a release without what distinguishes only builds of one night: ``+g1a2b3c4``."""
    return release.partition("+")[0]


def _release(release: str) -> str:
    """Name a release without the night on the way to it: ``0.30.0.dev``."""
    return _NIGHT.sub(".dev", short(release))


def _sticks_out(place: float, name: str) -> bool:
    return place * _NARROWEST + _LETTER * len(name) / 2 > _NARROWEST + _MARGIN


def _x(mark: Mark) -> str:
    return f"{mark.at:{_SECONDS}}"


def _lines(text: str) -> str:
    return escaped(text).replace("\n", "<br>")


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
    """Mark where the machine changed, by a small mark if nothing moved; gives whether it is inside.

    ``moment`` is when the first run after the change began; ``text`` is shown on hover.
    """
    first, last = map(pd.Timestamp, figure.layout.xaxis.range)
    if not first <= _naive(moment) <= last:
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
    """Shade the time in which nothing was measured; the axis is widened to ``until``, now.

    A long time is cut off, so that what was measured keeps most of the figure.
    """
    first, last = (pd.Timestamp(edge, tz=UTC) for edge in figure.layout.xaxis.range)
    until = min(until, max(last, since) + max((last - first) * _MOST_GAP, _ANY_GAP))
    _widen(figure, until)
    figure.add_shape(**span(_written(since), _written(until), _SHADE))
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
    naive = _naive(moment)
    if naive >= last:
        edge = naive + (naive - first) * _ROOM
        axis.range = [axis.range[0], edge.strftime(_SECONDS)]


def _naive(moment: datetime) -> pd.Timestamp:
    return pd.Timestamp(moment.astimezone(UTC)).tz_localize(None)


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_SECONDS)
