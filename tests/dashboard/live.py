"""What a page of the dashboard says, read from what Streamlit would send to the browser."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.testing.v1 import AppTest

from hybridwatch.pages.address import Address
from tests.dashboard.parity import read_href

APP: Final = Path(__file__).parents[2] / "dashboard" / "app.py"
_PATIENCE_S: Final = 120


def page_of(screen: str) -> AppTest:
    """The page of a screen without the navigation around it; not yet run."""
    return _bare(AppTest.from_function(_draw, args=(screen,), default_timeout=_PATIENCE_S))


def _draw(screen: str) -> None:
    from navigation import draw_page  # a script of its own, so it knows nothing of this module

    draw_page(screen)


def whole_app() -> AppTest:
    """The dashboard with its navigation; not yet run."""
    return _bare(AppTest.from_file(str(APP), default_timeout=_PATIENCE_S))


def _bare(app: AppTest) -> AppTest:
    """The same app without components of installed packages, of which the dashboard has none.

    To look for them through every package takes longer than to draw a page.
    """
    app._bidi_component_manager = BidiComponentManager()
    return app


def pages_of(app: AppTest) -> dict[str, str]:
    """The pages of an app that has run: their address, and what Streamlit knows them by."""
    return {str(page["url_pathname"]): known for known, page in app._registered_pages.items()}


def turn_to(app: AppTest, screen: str) -> None:
    """Open another page when the app runs next; its own ``switch_page`` knows only files."""
    app._page_hash = pages_of(app)[screen]


class Text(HTMLParser):
    """The text of a page, scripts and styles left out."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = False
        self.feed(html)

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in {"script", "style"}
        self.parts += [value or "" for name, value in attrs if name == "aria-label"]

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 (the parser's signature)
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def said_by(page: AppTest) -> str:
    """Everything the page says, however it is drawn."""
    said: list[str] = []
    elements: list[Any] = list(page.main)
    for element in elements:
        match element.type:
            case "html":
                said.append(Text(element.proto.body).text)
            case "plotly_chart":
                said.append(element.proto.alt)
            case "selectbox":
                said += [element.label, element.options[element.index or 0]]
            case "multiselect":
                said += [element.label, ", ".join(element.value) or "all"]
            case "text_input":
                said += [element.label, element.value]
            case "expandable" | "expander":
                said.append(unescaped(element.label))
            case "text" | "code":
                said.append(element.value)
            case _:
                pass
    return "\n".join(said)


def unescaped(label: str) -> str:
    """What a reader sees of a label that Markdown shows as it is."""
    return re.sub(r"\\(.)", r"\1", label)


def html_of(page: AppTest) -> str:
    """Everything that the page writes as HTML, but for our script."""
    parts = [element.proto for element in page.get("html")]
    return "\n".join(each.body for each in parts if not each.unsafe_allow_javascript)


def address_of(page: AppTest) -> Address:
    """The address of the view, which the browser is told to show."""
    scripts = [each.proto.body for each in page.get("html") if each.proto.unsafe_allow_javascript]
    (href,) = re.findall(r'<script data-address="([^"]*)"', "".join(scripts))
    return read_href(unescape(href))


def files_of(page: AppTest) -> list[str]:
    """The names of the tables and figures whose CSV the page offers."""
    return [each.proto.id for each in page.get("download_button") if each.proto.label == "CSV"]
