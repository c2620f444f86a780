"""What a static site must keep: every link leads to a file of it, and no page asks for another."""

import base64
import json
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOADED: Final = frozenset({"script", "img", "link", "iframe", "source", "object", "embed"})
"""Elements whose address a browser asks for by itself."""


class _Parsed(HTMLParser):
    """The addresses of a page, each with its element, and the runs that its figures open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._plot: dict[str, str | None] = {}
        self._in_figure = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [(tag, str(given[name])) for name in ("href", "src") if name in given]
        if "data-height" in given:
            self._plot = given
        self._in_figure = tag == "script" and given.get("type") == "text/plain"

    def handle_data(self, data: str) -> None:
        if self._in_figure and self._plot.get("data-runs"):
            gone = (self._plot.get("data-gone") or "").split()
            runs = {run for run in _runs_of(unpack(data)) if run not in gone}
            ends = self._plot["data-runs"], self._plot["data-suffix"]
            self.found += [("a", f"{ends[0]}{run}{ends[1]}") for run in runs]
        self._in_figure = False


def unpack(packed: str) -> str:
    """Read what a page holds compressed, as its script does."""
    return zlib.decompress(base64.b64decode(packed)).decode()


def _runs_of(figure: str) -> Iterator[str]:
    for trace in json.loads(figure)["data"]:
        for about in trace.get("customdata") or ():
            if about and about[-1]:
                yield str(about[-1])


def broken_links(folder: Path) -> list[str]:
    """Name each address in a site that is no file of it, or that a browser asks others for."""
    return [
        f"{page.relative_to(folder)}: {address}"
        for page in sorted(folder.rglob("*.html"))
        for tag, address in _Parsed(page.read_text(encoding="utf-8")).found
        if not _is_fine(tag, address, page, folder)
    ]


def _is_fine(tag: str, address: str, page: Path, folder: Path) -> bool:
    parts = urlsplit(address)
    if parts.scheme == "data" or address == "#":
        return True
    if parts.scheme or parts.netloc:
        return parts.scheme == "https" and tag not in _LOADED
    target = (page.parent / unquote(parts.path)).resolve()
    return target.is_relative_to(folder.resolve()) and target.is_file()
