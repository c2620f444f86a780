"""A part of the live page, as one component: ``sheet.js`` of the library brings it to life.

With an element of Streamlit for each block, a browser spends more on Streamlit's bookkeeping than
on the page; and ``st.plotly_chart`` draws every figure anew for every change, also out of sight.
"""

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st
from markupsafe import Markup

from hybridwatch.pages.sheet import SHEET
from hybridwatch.pages.style import STYLE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_YEAR_S: Final = 365 * 24 * 3600
_START: Final = "sheet start"
_HERE: Final = """
[data-testid=stElementContainer] { transition: none !important; }
.st-key-sheet-start { display: none; }
[role=tab][aria-selected=true] p { color: light-dark(#1f5fbf, #6ea8ff); }
"""
"""Nothing is faded, frame by frame, while a page changes; what only prepares takes no room. White
on the theme's dark blue can be read, and so must that blue's word on the dark ground."""
_LIVE: Final = Path(__file__).parent / "sheet_live.js"
_SHEET: Final = st.components.v2.component(
    "hybridwatch_sheet",
    js=f"const STYLE = {json.dumps(STYLE + _HERE)};\n{SHEET}{_LIVE.read_text(encoding='utf-8')}",
    isolate_styles=False,  # one style is for the whole page
)


def draw_sheet(html: Markup, key: str, address: str = "") -> None:
    """Draw the HTML of blocks.

    Args:
        html: Of blocks.
        key: Its name on the page; under the same one, what is there changes in place.
        address: The whole relative address of the view; it replaces what the browser shows, so
            that filling in defaults is not a step of the browser's history.
    """
    _SHEET(key=key, data={"html": str(html), "plotly": plotly_path(), "address": address})


def prepare(*, figures: bool) -> None:
    """Let the browser fetch, while a view is laid out, what it will draw it with.

    Args:
        figures: Whether it will draw some.
    """
    _SHEET(key=_START, data={"html": "", "plotly": plotly_path(), "soon": figures})


def plotly_path() -> str:
    """Give the address of plotly's script on this server; another version has another."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/plotly-{version('plotly')}.js".replace("//", "/")


async def serve_plotly(_: "Request") -> "Response":
    """Answer with plotly's script, which a browser may keep."""
    from starlette.responses import Response

    return Response(
        _plotly(),
        media_type="text/javascript",
        headers={"Cache-Control": f"public, max-age={_YEAR_S}, immutable"},
    )


@cache
def _plotly() -> bytes:
    from hybridwatch.figures.script import plotly_script  # takes long to import

    return bytes(plotly_script(), "utf-8")
