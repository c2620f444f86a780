"""What a page of the dashboard says, read from what Streamlit would send to the browser."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from streamlit.testing.v1 import AppTest

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
            case "html":
                told.append(Text(element.proto.body).text)
            case "selectbox":
                told += [element.label, element.options[element.index or 0]]
            case "multiselect":
                told += [element.label, ", ".join(element.value) or "all"]
            case "text_input":
                told += [element.label, element.value]
            case "plotly_chart":
                told.append(element.proto.spec)
            case "code" | "text" | "markdown":
                told.append(element.value)
            case _:
                pass
    return "\n".join(told + [each.label.replace("\u200b", "") for each in page.expander])
