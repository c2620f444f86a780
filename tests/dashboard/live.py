"""What a page of the dashboard says, read from what Streamlit would send to the browser."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from streamlit.testing.v1 import AppTest

from hybridwatch.pages.address import Address, read_href

PAGES: Final = Path(__file__).parents[2] / "dashboard" / "screens"


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
    told: list[str] = []
    elements: list[Any] = list(page.main)
    for element in elements:
        match element.type:
            case "bidi_component":
                told.append(Text(sheet_html(element)).text)
            case "selectbox":
                told += [element.label, element.options[element.index or 0]]
            case "multiselect":
                told += [element.label, ", ".join(element.value) or "all"]
            case "text_input":
                told += [element.label, element.value]
            case "text":
                told.append(element.value)
            case _:
                pass
    return "\n".join(told)


def html_of(page: AppTest) -> str:
    """Everything that the page writes as HTML."""
    return "\n".join(map(sheet_html, page.get("bidi_component")))


def address_of(page: AppTest) -> Address:
    """The address of the view, which the browser is told to show."""
    told = [json.loads(element.proto.json) for element in page.get("bidi_component")]
    (href,) = (each["address"] for each in told if each.get("address"))
    return read_href(href)


def sheet_html(element: Any) -> str:
    """What a component of ours is told to write."""
    html = json.loads(element.proto.json)["html"]
    assert isinstance(html, str)
    return html
