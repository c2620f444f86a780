"""Figures of two sides: curves of a sweep with their bands, what a step is made of, and flames."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.analysis.growth import LEAST, compute_shares, without_line
from hybridwatch.analysis.verdict import LoadPoint, SideCurve, Spread
from hybridwatch.analysis.wording import numbers
from hybridwatch.metrics import Unit
from hybridwatch.records.store.verdicts import Passes
from hybridwatch.reports.figures.base import (
    AXES,
    COLOURS,
    HOVERS,
    SIDES,
    SYMBOLS,
    UPRIGHT_UNSEEN,
    axis_title,
    base_figure,
    compute_height,
    escaped,
    faint,
    row_text,
    span,
)
from hybridwatch.reports.figures.marks import MARK
from hybridwatch.reports.reason_text import KNOBS, describe_interactivity, describe_output, rate

_HEIGHT: Final = 420
_BAND: Final = 0.2
_SHADE: Final = "rgba(128,128,128,0.22)"
_LABELS: Final = ("top right", "bottom left")
"""Where the load stands next to a point of each side, so that equal curves do not hide it."""
_DASHES: Final = ("solid", "dot")
*_OF_PHASES, _REST = COLOURS
_PHASES: Final = dict(
    zip(("prepare", "metadata", "forward", "sample", "draft"), _OF_PHASES, strict=True)
)
_BAR: Final = 56
"""Pixels of a build's bar, its name included: it stands above, to leave a narrow page its width."""
_EDGES: Final = 96
_STEPS_HEIGHT: Final = 280
_WRITTEN: Final = 0.09
"""Share of the longest step from which on a phase has room for its name."""


def figure_curves(
    sides: Sequence[SideCurve], crossings: Sequence[tuple[float, float]]
) -> go.Figure:
    """Draw one curve a side, and where, in interactivity, the better side changes."""
    drawn = list(enumerate(sides))
    first = sides[0]
    return base_figure(
        [draw(at, side, len(sides)) for draw in (_band, _line) for at, side in drawn],
        height=_HEIGHT,
        margin={"l": 72, "r": 12, "t": 12, "b": 92},
        legend={"orientation": "h", "yanchor": "top", "y": -0.2, "x": 0},
        shapes=[*(span(*edges, _SHADE) for edges in crossings), *_bounds(first)],
        annotations=list(_bound_names(first)),
        xaxis={
            "title": axis_title(f"interactivity: {describe_interactivity(first)}"),
            "tickformat": ",~g",
        },
        yaxis={"title": axis_title(f"throughput: {describe_output(first)}"), "tickformat": ",~g"},
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


def figure_phases(phases: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Draw the phases of a step in their order, in seconds, a bar for each build."""
    longest = max(sum(parts.values()) for parts in phases.values())
    traces: list[dict[str, Any]] = []
    named: set[str] = set()
    for place, parts in enumerate(phases.values()):
        start = 0.0
        for phase, seconds in parts.items():
            traces.append(_bar(phase, place, (start, seconds), longest, new=phase not in named))
            named.add(phase)
            start += seconds
    return base_figure(
        traces,
        xaxis={"tickformat": "~s", "ticksuffix": "s", "range": [0, 1.02 * longest]},
        yaxis={"range": [len(phases) - 0.5, -0.75], **UPRIGHT_UNSEEN},
        barmode="overlay",
        height=_BAR * len(phases) + _EDGES,
        bargap=0.45,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -0.35, "x": 0, "traceorder": "normal"},
        annotations=[
            row_text(f"{build} \u00b7 {numbers.duration(sum(parts.values()))}", place - 0.46)
            for place, (build, parts) in enumerate(phases.items())
        ],
    )


def figure_steps(title: str, lines: Mapping[str, Sequence[float]], *, seconds: bool) -> go.Figure:
    """Draw a number of every step, a line for each build."""
    unit = Unit.SECONDS if seconds else Unit.COUNT
    value, form = HOVERS[unit], AXES[unit]
    return base_figure(
        [
            {
                "type": "scatter",
                "x": list(range(1, len(values) + 1)),
                "y": list(values),
                "mode": "lines",
                "line": {"color": COLOURS[side], "width": 1.5, "shape": "hv", "dash": dash},
                "name": escaped(build),
                "hovertemplate": (
                    f"<b>{value}</b> in step %{{x}}<br>{escaped(build)}<extra></extra>"
                ),
            }
            for side, ((build, values), dash) in enumerate(
                zip(lines.items(), _DASHES, strict=False)
            )
        ],
        xaxis={"showgrid": False},
        yaxis={"rangemode": "tozero", **form},
        title=title,
        height=_STEPS_HEIGHT,
        margin={"l": compute_height(unit), "r": 8, "t": 40, "b": 28},
        legend={"orientation": "h", "yanchor": "top", "y": -0.22, "x": 0},
        showlegend=True,
    )


def _bar(
    phase: str, place: int, span: tuple[float, float], longest: float, *, new: bool
) -> dict[str, Any]:
    start, seconds = span
    length = numbers.duration(seconds)
    return {
        "type": "bar",
        "orientation": "h",
        "x": [seconds],
        "base": [start],
        "y": [place],
        "name": escaped(phase),
        "legendgroup": escaped(phase),
        "showlegend": new,
        "marker": {"color": _PHASES.get(phase, _REST)},
        "text": [length if seconds >= _WRITTEN * longest else ""],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"color": "#ffffff"},
        "hovertemplate": f"<b>{length}</b> {escaped(phase)}<extra></extra>",
    }


_FULL: Final = 0.05
"""Change of a share at which a colour is full."""
_HEAT: Final = ((0.0, "#3b7ddd"), (0.5, "#d9d9d9"), (1.0, "#d4483b"))
_WHOLE: Final = 0.99
"""The outermost functions that nearly all samples have in common are left out."""
_FLAME_ROW: Final = 22
"""Pixels."""


def draw_flames(baseline: Passes, contender: Passes) -> tuple[go.Figure, dict[str, list[Any]]]:
    """Draw what the contender spends at least 0.5 % of its time in; gives the numbers as well.

    Root on top, as an icicle; wide is what takes time, red what takes more than before (Gregg, "The
    Flame Graph", CACM 59(6), 2016). The colour is that of a function's own time, wherever it was
    called from: a function that was put around others would else turn all of them red.
    """
    shares = _shares_of_paths(contender)
    before, after = compute_shares(baseline), compute_shares(contender)
    paths, names = list(shares), [path[-1] for path in shares]
    data: dict[str, list[Any]] = {
        "function": [" > ".join(path) for path in paths],
        "share": list(shares.values()),
        "own baseline": [before.get(name, 0.0) for name in names],
        "own contender": [after.get(name, 0.0) for name in names],
    }
    ids = {path: str(at) for at, path in enumerate(paths)}
    own = list(zip(data["own baseline"], data["own contender"], strict=True))
    trace: dict[str, Any] = {
        "type": "icicle",
        "ids": list(ids.values()),
        "labels": [escaped(name.partition(" ")[0]) for name in names],
        "parents": [ids.get(path[:-1], "") for path in paths],
        "values": data["share"],
        "branchvalues": "total",
        "sort": False,
        "tiling": {"orientation": "v"},
        "marker": {
            "colors": [new - old for old, new in own],
            "colorscale": _HEAT,
            "cmin": -_FULL,
            "cmax": _FULL,
        },
        "hovertext": [
            f"<b>{escaped(name)}</b><br>{share:.1%} of engine time with what it calls<br>"
            f"its own: {old:.1%} before, {new:.1%} now"
            for name, share, (old, new) in zip(names, data["share"], own, strict=True)
        ],
        "hoverinfo": "text",
        "textfont": {"color": "#111111"},
        "pathbar": {"visible": False},
    }
    layout: dict[str, Any] = {
        "height": _FLAME_ROW * len(set(map(len, paths))) + 24,
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 16},
    }
    hidden = {"visible": False}
    return base_figure([trace], xaxis=hidden, yaxis=hidden, **layout), data


def _shares_of_paths(side: Passes) -> dict[tuple[str, ...], float]:
    """Give the share of the samples that begin with each path of functions, callers first."""
    counted = Counter[tuple[str, ...]]()
    for stack, samples in (one for stacks in side for one in stacks.items()):
        path = tuple(map(without_line, stack))
        counted.update({path[:depth]: samples for depth in range(1, len(path) + 1)})
    whole = sum(sum(stacks.values()) for stacks in side)
    shares = {path: samples / whole for path, samples in sorted(counted.items())}
    trunk = max((path for path, share in shares.items() if share >= _WHOLE), key=len, default=())
    return {
        path: share
        for path, share in shares.items()
        if share >= LEAST and path[: len(trunk)] == trunk
    }
