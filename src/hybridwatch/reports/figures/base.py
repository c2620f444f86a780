"""What all figures have in common: their look.

Colours read on light and on dark ground, so a figure need not know where it will stand; words and
ground have the page's own. Plotly reads a small HTML dialect in every text it shows, so whatever
comes from a record goes through ``escaped``.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

import plotly.graph_objects as go

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


def base_figure(
    traces: Sequence[Mapping[str, Any]],
    *,
    xaxis: Mapping[str, Any],
    yaxis: Mapping[str, Any],
    title: str = "",
    **layout: Any,
) -> go.Figure:
    """Make a figure; at once, since one that grows is checked again for every piece.

    It has no template: that would be 7 kB of defaults.
    """
    if title:
        layout["title"] = {**_TITLE, "text": escaped(title)}
    axes = {"xaxis": {**_AXIS, **xaxis}, "yaxis": {**_AXIS, **yaxis}}
    figure = go.Figure(list(traces), {**_LAYOUT, **layout, **axes})
    figure.layout.template = None
    return figure


def figure_on(figure: go.Figure, ground: str | None, words: str | None) -> go.Figure:
    """Give a figure the colours of a page that draws a figure once for each new value.

    ``ground`` is the page's colour, as CSS writes it; plotly's where it is not known. ``words`` is
    the colour of the page's words. The figure itself stays as it is. Plotly takes equal revisions
    for equal numbers, so a page that is given the same copy twice draws it once; another figure has
    to be drawn in another place.
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
    """Let the ground shine through a colour, which is as ``#rrggbb``.

    An ``alpha`` of 1 is as it was. Plotly's ``opacity`` of a point looks the same, but a browser
    then composes every point by itself.
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def escaped(text: str) -> str:
    """Make a text harmless for plotly."""
    # Plotly decodes &lt; and &amp; but shows &quot; as it stands; quotes are harmless in text.
    return escape(visible(text), quote=False)
