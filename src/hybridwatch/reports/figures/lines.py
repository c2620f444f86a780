"""Figures of lines: medians with their band, trials, change points, releases and fixes."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from hybridwatch.analysis.change_point import ChangePoint, HistoryState
from hybridwatch.analysis.wording import numbers
from hybridwatch.history.lines import Line, releases_in_order
from hybridwatch.metrics import Metric
from hybridwatch.reports.figures.base import (
    COLOURS,
    HOVERS,
    SIDES,
    SYMBOLS,
    base_figure,
    compute_height,
    escaped,
    faint,
    span,
    upright_axis,
)
from hybridwatch.reports.figures.marks import AXIS, Mark, build_marks, fitting, labels, rules, short

_HEIGHT: Final = 350
_WORSE: Final = "#D9480F"
_BETTER: Final = "#0E9A77"
"""3:1 on white and on near-black; the triangle shows the direction, too."""
_TICKS: Final = 60
"""Medians in a figure up to which each has a tick; more run into each other, and take as long to
draw as all the rest."""
_BAND: Final = 0.14
_TRIAL: Final = 0.45
_SHADE: Final = 0.1
_BELOW: Final = 28
"""Room for one row of ticks; the legend asks for its own."""
_MARGIN: Final = 0.04
_DAY_MS: Final = 86_400_000
_MOMENT: Final = pd.Timedelta(hours=6)
_SQUEEZED: Final = 2.0
"""Times that an ended definition may stretch an axis before it is left outside."""
_ABOVE: Final = 0.08
"""Room above and below, of the height that is drawn."""


def figure_lines(lines: Sequence[Line], metric: Metric) -> go.Figure:
    """Draw at least one line, over moments or, where they are laid out so, over releases.

    Each point that can be pointed at has its run's id as the last of its ``customdata``.
    """
    traces: list[dict[str, Any]] = []
    over_releases = lines[0].over_releases
    ticks = sum(len(line.levels) for line in lines) <= _TICKS
    for nth, line in enumerate(lines):
        colour = COLOURS[nth % len(COLOURS)]
        traces.append(_band(line, colour))
        traces += _trials(line, colour, metric)
        medians = _medians(line, colour, metric)
        # A run between two gaps has nothing to be joined to.
        alone = any(piece.stop - piece.start == 1 for piece in line.pieces)
        traces.append(medians if ticks or alone else {**medians, "mode": "lines"})
        traces += _gaps(line, colour, metric)
    for line in lines:
        traces += _changes(line, metric)
    marks = [] if over_releases else build_marks(lines)
    if marks:
        traces.insert(0, rules(marks))
    return base_figure(traces, **_layout(lines, metric, marks))


def find_fitted(lines: Sequence[Line]) -> Sequence[Line]:
    """Give the lines that the axes are laid out for.

    All of them, but for an ended definition next to which its heir would be squeezed flat.
    """
    breaks = [one.at for line in lines for one in line.breaks]
    if not breaks:
        return lines
    heirs = [line for line in lines if line.levels["started_at"].max() >= max(breaks)]
    return heirs if _reach(lines) > _SQUEEZED * _reach(heirs) else lines


def _reach(lines: Sequence[Line]) -> float:
    values = _values(lines)
    return max(values) - min(values)


def _x(frame: pd.DataFrame, line: Line) -> list[Any]:
    if line.over_releases:
        return [float(place) for place in frame["place"]]
    return list(map(str, _utc(frame, "s")))


def _moments(frame: pd.DataFrame) -> list[str]:
    return [moment.replace("T", " ") + " UTC" for moment in _utc(frame, "m")]


def _utc(frame: pd.DataFrame, unit: Literal["s", "m"]) -> npt.NDArray[np.str_]:
    # pandas' own strftime takes ten times as long.
    moments = frame["started_at"].dt.tz_localize(None).to_numpy("datetime64[ns]")
    texts: npt.NDArray[np.str_] = np.datetime_as_string(moments, unit=unit)
    return texts


def _band(line: Line, colour: str) -> dict[str, Any]:
    """A closed outline for each stretch, so that it needs no second trace to be filled up to."""
    every = _x(line.levels, line)
    low, high = line.levels["low"].tolist(), line.levels["high"].tolist()
    x: list[Any] = []
    y: list[Any] = []
    for piece in line.pieces:
        x += [*every[piece], *every[piece][::-1], None]
        y += [*high[piece], *low[piece][::-1], None]
    return {
        "type": "scatter",
        "x": x[:-1],
        "y": y[:-1],
        "fill": "toself",
        "fillcolor": faint(colour, _BAND),
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": line.title,
    }


def _parted(values: Sequence[Any], line: Line) -> list[Any]:
    """Values with nothing between stretches, so that no line crosses a gap."""
    return [each for piece in line.pieces for each in (*values[piece], None)][:-1]


def _gaps(line: Line, colour: str, metric: Metric) -> Iterator[dict[str, Any]]:
    """Mark where runs are missing, at the height of the median before."""
    pairs = list(pairwise(line.pieces))
    if not pairs:
        return
    before = line.levels.iloc[[old.stop - 1 for old, _ in pairs]]
    after = line.levels.iloc[[new.start for _, new in pairs]]
    middle = before["started_at"].to_numpy() + (
        (after["started_at"].to_numpy() - before["started_at"].to_numpy()) / 2
    )
    yield {
        "type": "scatter",
        "x": _x(before.assign(started_at=pd.to_datetime(middle, utc=True)), line),
        "y": before["value"].tolist(),
        "mode": "markers",
        "marker": {"symbol": "x-thin", "size": 8, "line": {"color": colour, "width": 1.5}},
        "text": [
            f"{old} to {new}" for old, new in zip(_moments(before), _moments(after), strict=True)
        ],
        "customdata": [(run,) for run in before["run"]],
        "hovertemplate": f"<b>no {metric.id}</b>, %{{text}}<extra></extra>",
        "name": escaped(line.title),
        "showlegend": False,
        "legendgroup": line.title,
    }


def _medians(line: Line, colour: str, metric: Metric) -> dict[str, Any]:
    levels = line.levels
    sides = zip(levels["build"], levels["n"], levels["low"], levels["high"], strict=True)
    texts = [
        f"{escaped(build)}<br>median of {n} "
        f"({numbers.value(low, metric)} to {numbers.value(high, metric)})"
        for build, n, low, high in sides
    ]
    runs = list(zip(_moments(levels), levels["run"], strict=True))
    parted = partial(_parted, line=line)
    return {
        "type": "scatter",
        "x": parted(_x(levels, line)),
        "y": parted(levels["value"].tolist()),
        "mode": "lines+markers",
        "line": {"color": colour, "width": 1.8},
        "marker": {
            "symbol": "line-ew",
            "size": 9,
            "opacity": 1,
            "line": {"color": colour, "width": 2},
        },
        "name": escaped(line.title),
        "legendgroup": line.title,
        "text": parted(texts),
        "customdata": parted(runs),
        "hovertemplate": (
            f"<b>{HOVERS[metric.unit]}</b> %{{text}}<br>%{{customdata[0]}}<extra></extra>"
        ),
    }


def _trials(line: Line, colour: str, metric: Metric) -> Iterator[dict[str, Any]]:
    # Equal trials hide each other, and the only trial of a run is its median.
    seen = (line.points["n"] > 1) & ~line.points.duplicated(["level", "value"])
    for side, role in enumerate(SIDES):
        points = line.points[seen & (line.points["side"] == side)]
        if points.empty:
            continue
        texts = zip(points["build"], points["record"], points["revision"], strict=True)
        (testbed,) = points["testbed"].unique()  # series are of one
        yield {
            "type": "scatter",
            "x": _x(points, line),
            "y": points["value"].tolist(),
            "mode": "markers",
            "marker": {"symbol": SYMBOLS[side], "size": 5, "color": faint(colour, _TRIAL)},
            "name": escaped(line.title),
            "legendgroup": line.title,
            "showlegend": False,
            "meta": escaped(testbed),
            "text": [_hover(*each, role) for each in texts],
            "customdata": [
                (f"trial {nth + 1}<br>{moment}", run)
                for nth, moment, run in zip(
                    points["nth"], _moments(points), points["run"], strict=True
                )
            ],
            "hovertemplate": (
                f"<b>{HOVERS[metric.unit]}</b>, %{{customdata[0]}}<br>%{{text}}"
                "<br>testbed %{meta}<extra></extra>"
            ),
        }


def _hover(build: str, record: str, revision: str, side: str) -> str:
    return (
        f"{escaped(build)} ({side})<br>record {escaped(record.rpartition('/')[2])}<br>"
        f"harness commit {escaped(revision)}"
    )


def _changes(line: Line, metric: Metric) -> Iterator[dict[str, Any]]:
    if not line.history.points:
        return
    found = list(line.history.points)
    at = line.levels.iloc[[point.index for point in found]]
    colours = [_WORSE if metric.better.is_worse(point.effect) else _BETTER for point in found]
    yield {
        "type": "scatter",
        "x": _x(at, line),
        "y": at["value"].tolist(),
        "mode": "markers",
        "marker": {
            "symbol": [_symbol(point) for point in found],
            "size": 14,
            "opacity": 1,
            "color": colours,
            "line": {"color": colours, "width": 2},
        },
        "text": [
            f"{point.state.value}: {describe_change(point, line, metric)}<br>{escaped(line.title)}"
            for point in found
        ],
        "customdata": [(run,) for run in at["run"]],
        "hovertemplate": "<b>change point</b>, %{text}<extra></extra>",
        "showlegend": False,
        "legendgroup": line.title,
    }


def _places(line: Line, metric: Metric) -> Iterator[dict[str, Any]]:
    """Shade from the last run before a change may have been to the first behind it, and drifts."""
    x, history = _x(line.levels, line), line.history
    spans = [(point.first - 1, point.last, point.effect) for point in history.points]
    spans += [(max(drift.index - 1, 0), drift.end, drift.effect) for drift in history.drifts]
    for start, end, effect in spans:
        colour = _WORSE if metric.better.is_worse(effect) else _BETTER
        yield span(x[start], x[end], faint(colour, _SHADE))


def _symbol(point: ChangePoint) -> str:
    way = "triangle-up" if point.effect > 0 else "triangle-down"
    return way if point.state is HistoryState.CONFIRMED else f"{way}-open"


def describe_change(point: ChangePoint, line: Line, metric: Metric) -> str:
    """Write the size of a change point with its interval, in the unit that it was examined in."""
    is_known = not metric.kind.has_noise or line.levels["value"].min() > 0
    write = partial(numbers.effect, kind=metric.kind) if is_known else numbers.in_own_unit
    return numbers.level_change(point.effect, point.interval, write)


def _layout(lines: Sequence[Line], metric: Metric, marks: Sequence[Mark]) -> dict[str, Any]:
    fitted = find_fitted(lines)
    first, last = _edges(fitted)
    upright = upright_axis(metric, _values(fitted))
    if fitted is not lines:
        upright["range"] = _upright_range(fitted, is_from_zero="rangemode" in upright)
    return {
        "height": _HEIGHT,
        "margin": {"l": compute_height(metric.unit), "r": 8, "t": 28 if marks else 12, "b": _BELOW},
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.17, "x": 0},
        # As Streamlit has them where a point can be clicked: changing them would draw it again.
        "hovermode": "closest",
        "clickmode": "event+select",
        "dragmode": "pan",
        "shapes": [shape for line in lines for shape in _places(line, metric)],
        "annotations": list(labels([m for m in marks if m.at >= first], first, last)),
        "xaxis": _axis(lines if lines[0].over_releases else fitted),
        "yaxis": upright,
        **({"yaxis2": AXIS} if marks else {}),
    }


def _upright_range(lines: Sequence[Line], *, is_from_zero: bool) -> list[float]:
    values = _values(lines)
    low, high = (0.0 if is_from_zero else min(values)), max(values)
    room = _ABOVE * (high - low) or _ABOVE * abs(high) or 1.0
    return [low - room, high + room]


def _values(lines: Sequence[Line]) -> list[float]:
    """Everything that is drawn: bands, and trials, which may lie outside of them."""
    drawn = [line.levels[edge] for line in lines for edge in ("low", "high")]
    drawn += [line.points["value"] for line in lines]
    return [value for each in drawn for value in each.tolist()]


def _axis(lines: Sequence[Line]) -> dict[str, Any]:
    if lines[0].over_releases:
        releases = releases_in_order([r for line in lines for r in line.levels["release"]])
        places = {
            release: float(np.round(place))
            for line in lines
            for release, place in zip(line.levels["release"], line.levels["place"], strict=True)
        }
        ticks = [places[release] for release in releases]
        left, right = min(ticks) - 0.6, max(ticks) + 0.6
        names = [short(release) for release in releases]
        named = fitting([(tick - left) / (right - left) for tick in ticks], names)
        return {
            "tickmode": "array",
            "tickvals": [ticks[nth] for nth in named],
            "ticktext": [escaped(names[nth]) for nth in named],
            "tickangle": 0,
            "range": [left, right],
            "showgrid": False,
            "zeroline": False,
        }
    return {
        "type": "date",
        "range": [f"{edge:%Y-%m-%dT%H:%M:%S}" for edge in _edges(lines)],
        "showgrid": False,
        # Narrow and upright, so that their room is known.
        "nticks": 5,
        "tickangle": 0,
        "tickformatstops": [
            {"dtickrange": [None, _DAY_MS - 1], "value": "%H:%M\n%-d %b"},
            {"dtickrange": [_DAY_MS, 27 * _DAY_MS], "value": "%-d %b\n%Y"},
            {"dtickrange": ["M1", None], "value": "%b\n%Y"},
        ],
    }


def _edges(lines: Sequence[Line]) -> tuple[pd.Timestamp, pd.Timestamp]:
    first = min(line.levels["started_at"].min() for line in lines)
    last = max(line.levels["started_at"].max() for line in lines)
    room = max((last - first) * _MARGIN, _MOMENT if first == last else pd.Timedelta(0))
    return first - room, last + room
