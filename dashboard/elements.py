"""The blocks of a document that Streamlit draws itself: figures, commands, files."""

import time
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hybridwatch.pages.address import Address, address
from hybridwatch.pages.document import Chart, Command, Table
from hybridwatch.pages.html import (
    KEPT_CHARTS,
    STYLE,
    HtmlContext,
    caption_html,
    csv_of_chart,
    csv_of_table,
    file_name,
)
from hybridwatch.reports.figures.base import figure_on
from hybridwatch.system.plain_text import visible

if TYPE_CHECKING:
    from streamlit.elements.plotly_chart import PlotlyState

_LINKS: Final = (Path(__file__).parent / "links.js").read_text(encoding="utf-8")
_MARKDOWN: Final = "\\`*_{}[]()<>#+-.!|~:$^&"
_COLOURS: Final = ("background", "text")
_EMPTY_FIGURE: Final = "figures-soon"
_LIVE: Final = """
.st-key-figures-soon { display: none; }
[data-testid=stElementContainer] { transition: none !important; }
[role=tab][aria-selected=true] p { color: light-dark(#1f5fbf, #6ea8ff); }
[data-testid=stHtml] dl { padding-left: 0; }
.stPlotlyChart .main-svg { background: transparent !important; }
.stPlotlyChart .bg { fill: transparent !important; }
.stPlotlyChart :is(:is(.xtick, .ytick) text, .gtitle, .xtitle, .ytitle, .legendtext,
  .annotation-text) { fill: currentColor !important; }
[data-testid=stCode] code { user-select: all; }
[class*=st-key-csv] button { min-height: 0; padding: 0; }
[class*=st-key-csv] button p { font-size: 0.8rem; }
[class*=st-key-csv] { margin-top: -0.8rem; }
"""
"""No fading while a page changes. A figure's PNG has the theme's colours at the time the page was
drawn; on the page its colours follow a reader who changes the theme. The active tab's blue is
lighter on a dark ground, so that it can be read. A click on a command selects all of it: a browser
gives the clipboard only to a page that came by https, or from this machine."""


def draw_style() -> None:
    """Give the page the style of blocks."""
    st.html(f"<style>{STYLE}{_LIVE}</style>")


def draw_address(view: Address) -> None:
    """Write the view's whole address into the browser, and make links open in place."""
    _run_links(f'data-address="{escape(view.href())}"')


def _open(view: Address) -> None:
    """Open another view, as a click on a link to it does."""
    _run_links(f'data-goal="{escape(view.href())}"')


def _run_links(data: str) -> None:
    # A script runs only when its text is new, and the same view may come under a shorter address.
    stamp = time.monotonic_ns()
    st.html(f'<script {data} data-stamp="{stamp}">{_LINKS}</script>', unsafe_allow_javascript=True)


def prepare_charts(place: DeltaGenerator) -> None:
    """Let the browser fetch plotly while a view is prepared.

    ``place`` gets an empty, hidden figure; the caller empties it afterwards.
    """
    place.plotly_chart({"data": [{"type": "scatter"}]}, key=_EMPTY_FIGURE)


def draw_chart(chart: Chart, context: HtmlContext, key: str) -> None:
    """Draw a figure with its caption and its CSV; a click on a point may open its run.

    ``key`` is a name for it that is unique on the page.
    """
    picked = st.plotly_chart(
        _colour_figure(chart, st.context.theme.type or "light"),
        key=f"figure {key}",
        # Streamlit's own theme is a template, which makes plotly draw each figure twice.
        theme=None,
        alt=visible(f"{chart.title}: {chart.description}"),
        on_select="rerun" if chart.opens_runs else "ignore",
        selection_mode="points",
        config={
            "displaylogo": False,
            # A frame drawn with the zoom button, and two clicks, do the same.
            "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "autoScale2d"],
            "toImageButtonOptions": {
                "format": "png",
                "filename": file_name(chart.title, ""),
                "scale": 2,
            },
        },
    )
    st.html(f'<div class="hw-quiet">{caption_html(chart, context)}</div>')
    draw_csv(chart, key)
    if chart.opens_runs:
        points = cast("PlotlyState", picked)["selection"]["points"]
        if points and (custom := points[0].get("customdata")):
            _open(address("run", run=str(custom[-1])))


@lru_cache(maxsize=KEPT_CHARTS)
def _colour_figure(chart: Chart, theme: str) -> Any:
    ground, text = (st.get_option(f"theme.{theme}.{name}Color") for name in _COLOURS)
    return figure_on(chart.figure, ground, text)


def draw_command(command: Command) -> None:
    """Draw a command with the button that copies it."""
    if command.title:
        st.html(f'<div class="hw-quiet">{escape(visible(command.title))}</div>')
    st.code(visible(command.text), language=None, wrap_lines=True)


def markdown_of(text: str) -> str:
    """Write a text so that Markdown shows it as it is."""
    return "".join(f"\\{mark}" if mark in _MARKDOWN else mark for mark in visible(text))


def draw_csv(block: Table | Chart, key: str) -> None:
    """Offer the values of a table or a figure as CSV, which is made on a click."""
    name = block.title if isinstance(block, Chart) else block.caption
    st.download_button(
        "CSV",
        data=lambda: csv_of_chart(block) if isinstance(block, Chart) else csv_of_table(block),
        file_name=file_name(name, ".csv"),
        mime="text/csv",
        key=f"csv {key}",
        type="tertiary",
        icon=":material/download:",
        help=markdown_of(name),
        on_click="ignore",
    )
