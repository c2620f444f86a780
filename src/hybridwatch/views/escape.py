"""Making text from records harmless in Markdown.

A record may come from a stranger's pull request, and the model's answers are anybody's words. The
text must show as written: no markup, no HTML, no table cells, no mention that wakes people up.
"""

import re
import unicodedata
from typing import Final

_ELLIPSIS: Final = "\u2026"
_BREAK: Final = "\u200b"
"""A zero-width space. A host looks for @name, #1 and links after it has undone every escape, so
only a character in between stops it."""
_MARKUP: Final = re.compile(r"[\\`*_\[\]|~]")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&dollar;"}
_LINKS: Final = re.compile(r"[@#]|GH-|://|www\.", re.IGNORECASE)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LIST_START: Final = re.compile(r"([-+=]|\d+[.)])")


def escape(text: str, longest: int = 300) -> str:
    """Write a text on one line so that Markdown and HTML show it as it is.

    Safe inside a line, a table cell or an element; ``as_item`` is for the start of a line. Not
    for attributes.

    Args:
        text: Anything.
        longest: Characters kept before the text is cut with an ellipsis.

    Returns:
        One line without control, format (bidirectional) or surrogate characters.
    """
    return _harmless(_MARKUP.sub(r"\\\g<0>", _shortened(text, longest)))


def in_html(text: str, longest: int = 300) -> str:
    """Write a text inside a block of HTML, where Markdown is not read; else as ``escape``."""
    return _harmless(_shortened(text, longest))


def as_item(text: str) -> str:
    """Write a text as one item of a list, whatever it begins with."""
    line = escape(text)
    return f"- {_BREAK}{line}" if _LIST_START.match(line) else f"- {line}"


def one_line(text: str) -> str:
    """Fold white space into single blanks and drop characters that steer a display."""
    blank = " ".join(text.split())
    return "".join(mark for mark in blank if not unicodedata.category(mark).startswith("C"))


def _shortened(text: str, longest: int) -> str:
    line = one_line(text)
    return line if len(line) <= longest else line[:longest] + _ELLIPSIS


def _harmless(line: str) -> str:
    line = "".join(_ENTITIES.get(mark, mark) for mark in line)
    return _LINKS.sub(rf"\g<0>{_BREAK}", line)


def fenced(command: str) -> str:
    """Put one line into a code block that the line itself cannot close."""
    fence = "```"
    while fence in command:
        fence += "`"
    return f"{fence}\n{one_line(command)}\n{fence}"


def fenced_lines(text: str, most: int, longest: int = 200) -> str:
    """Put the last lines of a text into a code block that none of them can close.

    Args:
        text: Anything, such as a log.
        most: Lines that are kept, from the end.
        longest: Characters of a line that are kept.
    """
    shown = last_lines(text, most, longest)
    fence = "```"
    while any(fence in line for line in shown):
        fence += "`"
    return "\n".join([fence, *shown, fence])


def last_lines(text: str, most: int, longest: int = 200) -> list[str]:
    """Give the last lines of a text that are not empty, each harmless on a display.

    Args:
        text: Anything, such as a log.
        most: Lines that are kept, from the end.
        longest: Characters of a line that are kept.
    """
    lines = [_visible(line) for line in text.splitlines() if line.strip()][-most:]
    return [line if len(line) <= longest else line[:longest] + _ELLIPSIS for line in lines]


def _visible(line: str) -> str:
    """Keep the indentation of a line, and drop what steers a display: colours, directions."""
    plain = _COLOUR.sub("", line).expandtabs(4).rstrip()
    return "".join(mark for mark in plain if not unicodedata.category(mark).startswith("C"))
