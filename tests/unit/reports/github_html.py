"""A comment as GitHub shows it: rendered by GitHub's own cmark-gfm, then looked through."""

import re
from html.parser import HTMLParser
from typing import Final

from cmarkgfm import cmark

_EXTENSIONS: Final = ["autolink", "strikethrough", "table", "tagfilter", "tasklist"]
_OPTIONS: Final = cmark.Options.CMARK_OPT_UNSAFE | cmark.Options.CMARK_OPT_FOOTNOTES
_REFERENCE: Final = re.compile(
    r"@\w|#\d|\bGH-\d|\b(?:GHSA|CVE)-\w|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])", re.IGNORECASE
)
"""Of what GitHub makes links after rendering: names, issues, advisories, commits."""
_UNREAD: Final = frozenset({"a", "code", "pre"})
"""Inside these GitHub looks for none."""
_EMPTY: Final = frozenset({"wbr", "br", "img", "hr", "input"})


class Shown(HTMLParser):
    """What a reader gets.

    Attributes:
        links: Where links lead.
        references: What GitHub would make links of besides, and wake people by.
        text: What is read, and copied.
    """

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(cmark.markdown_to_html_with_extensions(markdown, _OPTIONS, _EXTENSIONS))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(dict(attrs).get("href") or "")
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if not _UNREAD & set(self._open):
            self.references += _REFERENCE.findall(data)
