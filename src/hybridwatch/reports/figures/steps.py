"""Figures of what a step of the engine is made of, build against build."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.analysis.wording import numbers
from hybridwatch.metrics import Unit
from hybridwatch.reports.figures.base import base_figure, escaped
from hybridwatch.reports.figures.trials import compute_height

_SIDES: Final = ("#2383C4", "#D9731A")
_DASHES: Final = ("solid", "dot")
_PHASES: Final = {
    "prepare": "#2383C4",
    "metadata": "#D9731A",
    "forward": "#0E9A77",
    "sample": "#B65FA3",
    "draft": "#A08A00",
}
_REST: Final = "#6C7A89"
"""Okabe and Ito's palette, each with 3:1 against white and near-black."""
_BAR: Final = 56
"""Pixels of a build's bar, its name included: it stands above, to leave a narrow page its width."""
_EDGES: Final = 96
_HEIGHT: Final = 280
_WRITTEN: Final = 0.09
"""Share of the longest step from which on a phase has room for its name."""


def figure_phases(phases: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Draw the phases of a step one after the other, a bar for each build.

    Phases are by build, in seconds, in the order of a step.
    """
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
        yaxis={
            "range": [len(phases) - 0.5, -0.75],
            "showticklabels": False,
            "showgrid": False,
            "zeroline": False,
        },
        barmode="overlay",
        height=_BAR * len(phases) + _EDGES,
        bargap=0.45,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -0.35, "x": 0, "traceorder": "normal"},
        annotations=[
            _name(f"{build} \u00b7 {numbers.duration(sum(parts.values()))}", place)
            for place, (build, parts) in enumerate(phases.items())
        ],
    )


def figure_steps(title: str, lines: Mapping[str, Sequence[float]], *, seconds: bool) -> go.Figure:
    """Draw a number of every step, a line for each build."""
    value = "%{y:.4s}s" if seconds else "%{y:,.6~r}"
    form = {"tickformat": "~s", "ticksuffix": "s"} if seconds else {"tickformat": ",~g"}
    return base_figure(
        [
            {
                "type": "scatter",
                "x": list(range(1, len(values) + 1)),
                "y": list(values),
                "mode": "lines",
                "line": {"color": _SIDES[side], "width": 1.5, "shape": "hv", "dash": _DASHES[side]},
                "name": escaped(build),
                "hovertemplate": (
                    f"<b>{value}</b> in step %{{x}}<br>{escaped(build)}<extra></extra>"
                ),
            }
            for side, (build, values) in enumerate(lines.items())
        ],
        xaxis={"showgrid": False},
        yaxis={"rangemode": "tozero", **form},
        title=title,
        height=_HEIGHT,
        margin={
            "l": compute_height(Unit.SECONDS if seconds else Unit.COUNT),
            "r": 8,
            "t": 40,
            "b": 28,
        },
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


def _name(text: str, place: int) -> dict[str, Any]:
    return {
        "text": escaped(text), "x": 0, "xref": "paper", "xanchor": "left", "y": place - 0.46,
        "yanchor": "middle", "showarrow": False, "font": {"size": 12},
    }  # fmt: skip
