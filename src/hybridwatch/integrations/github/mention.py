"""Which line of a comment speaks to the bot, as a reader of the comment would see it.

A line does that if it begins with the name in a paragraph of its own: not within a quote, a list, a
heading, a table or code, and not in a comment that has HTML, which can show a text as something
else. The parser of Markdown decides, not a pattern: a line behind ``> `` goes on with the quote.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_NAME: Final = re.compile(r"@hybridwatch(?=[ \t]|$)", re.ASCII | re.IGNORECASE)
_LONGEST_COMMENT: Final = 65_536
_HTML: Final = {"html_block", "html_inline"}
_ENDS: Final = {"softbreak", "hardbreak"}
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table").disable("text_join")
"""Joined texts would hide which characters were written as escapes or entities."""


def addressed_to_us(body: str) -> list[str]:
    """Give what each line that speaks to the bot says behind its name.

    A line in which there is more than plain text (code, a link, an image, an escape) is given with
    that left out as an unprintable mark, so that no grammar takes it.

    Args:
        body: A comment as it was written.
    """
    # What is no comment of GitHub's is not worth the time; nearly every comment ends here.
    if len(body) > _LONGEST_COMMENT or "@hybridwatch" not in body.lower():
        return []
    tokens = _MARKDOWN.parse(body)
    inlines = [
        token
        for before, token in pairwise(tokens)
        if before.type == "paragraph_open" and before.level == 0 and token.type == "inline"
    ]
    if any(_has_html(token) for token in tokens):
        return []
    lines = [line for inline in inlines for line in _lines(inline)]
    found = [(line, _NAME.match(line)) for line in lines]
    return [line[match.end() :].strip(" \t") for line, match in found if match]


def _has_html(token: Token) -> bool:
    return token.type in _HTML or any(child.type in _HTML for child in token.children or ())


def _lines(inline: Token) -> Iterator[str]:
    line = ""
    for child in inline.children or ():
        if child.type in _ENDS:
            yield line
            line = ""
        else:
            line += child.content if child.type == "text" else "\0"
    yield line
