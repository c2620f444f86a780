"""What all figures have in common, their look; and the figure of a run's trials.

Colours read on light and on dark ground, and differ for readers who do not see red and green.
Plotly reads a small HTML dialect in every text, so what comes from a record is ``escaped``.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import plotly.graph_objects as go

from hybridwatch.history.entry import SideTrials, Trials
from hybridwatch.metrics import Kind, Metric, Unit
from hybridwatch.system.plain_text import visible

_TYPE: Final = {
    "family": '"Source Sans", "Source Sans 3", "Source Sans Pro", system-ui, sans-serif',
    "size": 13,
}
_HOVER: Final = {
    "align": "left",
    "namelength": -1,
    "bgcolor": "#2b3644",
    "bordercolor": "#78808b",
    "font": {**_TYPE, "color": "#ffffff"},
}
_LAYOUT: Final[Mapping[str, Any]] = {"font": _TYPE, "hoverlabel": _HOVER}
_TITLE: Final = {"font": {"size": 15, "weight": 600}, "x": 0, "xanchor": "left", "pad": {"l": 4}}
_AXIS: Final = {
    "gridcolor": "rgba(128,128,128,0.22)",
    "zerolinecolor": "rgba(128,128,128,0.45)",
    "zerolinewidth": 1,
    # Margins leave room for labels, so that no measuring of each is needed.
    "ticklabeloverflow": "allow",
}
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
AXES: Final[dict[Unit, dict[str, str]]] = {
    **{unit: {"tickformat": ",~g", "ticksuffix": f" {unit.value}"} for unit in _SPELT},
    Unit.SECONDS: {"tickformat": "~s", "ticksuffix": "s"},
    Unit.BYTES: {"tickformat": "~s", "ticksuffix": "B"},
    Unit.COUNT: {"tickformat": ",~g"},
    Unit.RATIO: {"tickformat": ".0%"},
}
HOVERS: Final[dict[Unit, str]] = {
    **{unit: f"%{{y:,.4~r}} {unit.value}" for unit in _SPELT},
    Unit.SECONDS: "%{y:.4s}s",
    Unit.BYTES: "%{y:.4s}B",
    Unit.COUNT: "%{y:,.6~r}",
    Unit.RATIO: "%{y:.1%}",
}


UPRIGHT_UNSEEN: Final = {"showticklabels": False, "showgrid": False, "zeroline": False}
"""Of an upright axis along which rows are listed."""


def axis_title(text: str) -> dict[str, Any]:
    """Lay out the words at an axis."""
    return {"text": text, "font": {"size": 12}}


def span(start: Any, end: Any, colour: str) -> dict[str, Any]:
    """Shade from one place of the horizontal axis to another, over the whole height."""
    edges = {"x0": start, "x1": end, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "rect", **edges, "fillcolor": colour, "line": {"width": 0}, "layer": "below"}


def row_text(text: str, y: float, x: int = 0, anchor: str = "left") -> dict[str, Any]:
    """Write a text from records over a row, from the left edge (0) on or up to the right (1)."""
    placed = {"x": x, "xref": "paper", "xanchor": anchor, "y": y, "yanchor": "middle"}
    return {"text": escaped(text), **placed, "showarrow": False, "font": {"size": 12}}


def base_figure(
    traces: Sequence[Mapping[str, Any]],
    *,
    xaxis: Mapping[str, Any],
    yaxis: Mapping[str, Any],
    title: str = "",
    **layout: Any,
) -> go.Figure:
    """Make a figure, without a template, which is 7 kB; at once, since each change is checked."""
    if title:
        layout["title"] = {**_TITLE, "text": escaped(title)}
    axes = {"xaxis": {**_AXIS, **xaxis}, "yaxis": {**_AXIS, **yaxis}}
    # Without an empty one, plotly copies its own first.
    figure = go.Figure(list(traces), {**_LAYOUT, "template": {}, **layout, **axes})
    figure.layout.template = None
    return figure


def figure_on(figure: go.Figure, ground: str | None, words: str | None) -> go.Figure:
    """Copy a figure in the colours of a page's ground and words, as CSS writes them.

    Plotly takes equal revisions for equal numbers: the same copy is drawn once, and another figure
    has to be drawn in another place.
    """
    drawn = go.Figure(figure)
    drawn.layout = {
        **figure.layout.to_plotly_json(),
        "font": {**_TYPE, "color": words},
        "paper_bgcolor": ground,
        "plot_bgcolor": ground,
        "datarevision": 0,
    }
    drawn.layout.template = None
    return drawn


def faint(colour: str, alpha: float) -> str:
    """Let the ground shine through a colour, ``#rrggbb``; an ``alpha`` of 1 is as it was.

    Plotly's ``opacity`` looks the same, but a browser then composes every point by itself.
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def escaped(text: str) -> str:
    """Make a text harmless for plotly."""
    # Plotly decodes &lt; and &amp; but shows &quot; as it stands; quotes are harmless in text.
    return escape(visible(text), quote=False)


def plotly_script() -> str:
    """Give plotly's JavaScript, about 4 MB."""
    from plotly.offline import get_plotlyjs  # only saved pages bring it

    return str(get_plotlyjs())


def figure_trials(trials: Trials) -> go.Figure:
    """Draw one metric of a run: every trial as a point, the median of a side as a bar."""
    traces: list[dict[str, Any]] = []
    metric, run = trials.subject.metric, trials.entry.run
    builds = list(dict.fromkeys(side.build for side in trials.sides))
    for side in trials.sides:
        colour = COLOURS[builds.index(side.build)]
        name = f"{escaped(side.build)} ({SIDES[side.side]})"
        traces += [_bar(side, colour, name), _dots(side, trials, colour, name)]
    ticks = [0] if trials.sides else []
    return base_figure(
        traces,
        title=trials.subject.label,
        height=_HEIGHT,
        margin={"l": compute_height(metric.unit), "r": 8, "t": 44, "b": 28},
        legend={"orientation": "h", "yanchor": "top", "y": -0.14, "x": 0},
        xaxis={
            "tickmode": "array",
            "tickvals": ticks,
            "ticktext": [f"{run.started_at:%d %b %H:%M}" for _ in ticks],
            "range": [-_WIDTH, _WIDTH],
            "showgrid": False,
            "zeroline": False,
        },
        yaxis=upright_axis(metric, [value for side in trials.sides for value in side.values]),
    )


def upright_axis(metric: Metric, values: Iterable[float]) -> dict[str, Any]:
    """Lay out the axis on which values of a metric stand.

    Shifts of a few percent must be seen, so only a count begins at zero. A proportion ends at 100
    %, and a small count has no ticks between whole numbers.
    """
    axis: dict[str, Any] = dict(AXES[metric.unit])
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
    """Give the pixels for the numbers of an upright axis; plotly would draw twice to find them."""
    return _NUMBERS_AND_UNITS if unit in _SPELT else _NUMBERS


def _bar(side: SideTrials, colour: str, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [_shift(side.side)],
        "y": [side.median],
        "mode": "lines+markers",
        "line": {"color": colour, "width": 1.5},
        # A bar as wide as the cloud of points around it.
        "marker": {"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 3}},
        "name": name,
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _dots(side: SideTrials, trials: Trials, colour: str, name: str) -> dict[str, Any]:
    path, run = trials.entry.path, trials.entry.run
    about = [path.name, run.harness.revision or "unknown", run.testbed.id]
    value = HOVERS[trials.subject.metric.unit]
    last = len(side.values) - 1
    # In their order around the place of the side, so that none hides another.
    shifts = [_SPREAD * (nth / last - 0.5) if last else 0.0 for nth in range(last + 1)]
    return {
        "type": "scatter",
        "x": [_shift(side.side) + shift for shift in shifts],
        "y": list(side.values),
        "mode": "markers",
        "marker": {
            "symbol": SYMBOLS[side.side],
            "size": 8,
            "color": faint(colour, _TRIAL),
            "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"},
        },
        "name": name,
        "legendgroup": name,
        "customdata": [
            [*map(escaped, about), f"{run.started_at:%Y-%m-%d %H:%M} UTC", str(nth)]
            for nth in range(1, len(side.values) + 1)
        ],
        "hovertemplate": (
            f"<b>{value}</b>, trial %{{customdata[4]}}<br>{name}<br>%{{customdata[3]}}<br>"
            "record %{customdata[0]}<br>harness commit %{customdata[1]}<br>"
            "testbed %{customdata[2]}<extra></extra>"
        ),
    }


def _shift(side: int) -> float:
    return _SIDE_SHIFT if side else -_SIDE_SHIFT
