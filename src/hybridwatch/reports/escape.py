"""Making text from records harmless in Markdown, and fitting it into a limit.

A record may come from a stranger, and a model may answer anything: texts show as written.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hybridwatch.system.plain_text import visible

_ELLIPSIS: Final = "\u2026"
_BREAK: Final = "\u200b"
"""A zero-width space. A host looks for @name, #1 and addresses of mail after it has undone every
escape, so only a character in between stops it."""
_GAP: Final = "<wbr>"
"""What splits an address: a place where a line may break. It is not seen, and a copied address is
whole. A zero-width space would count as part of the host's name."""
_MARKUP: Final = re.compile(r"[\\`*_\[\]|~]")
_BACKSLASH: Final = r"\\\g<0>"
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&dollar;"}
_NAMES: Final = re.compile(r"[@#]|[!&$](?=\d)|GH-|GHSA-|CVE-", re.IGNORECASE)
"""After these GitHub or GitLab looks for a person, an issue, a merge request, an epic, a snippet,
an advisory."""
_ADDRESSES: Final = re.compile(
    r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=mailto:)|(?<=xmpp:)", re.IGNORECASE
)
_COMMITS: Final = re.compile(r"(?<![0-9a-z])[0-9a-f]{7,}(?![0-9a-z])", re.IGNORECASE)
_PIECES: Final = re.compile(r"[0-9a-f]{6}(?=[0-9a-f])", re.IGNORECASE)
"""What looks like a commit, and pieces that are too short for one."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_LINE: Final = 200
_LIST_START: Final = re.compile(r"([-+=]|\d+[.)])")
_NAMED: Final = 4
_NOTICE_ROOM: Final = 4096
"""Bytes kept for saying what was left out; four names of 100 characters, escaped, take less."""


def render_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown; its texts are escaped already."""
    ruler = "|".join("-" for _ in heads)
    lines = [" | ".join(heads), *(" | ".join(row) for row in rows)]
    return "\n".join([f"| {lines[0]} |", f"|{ruler}|", *(f"| {line} |" for line in lines[1:])])


def escape(text: str, longest: int = 300) -> str:
    """Write a text on one line so that Markdown and HTML show it as it is.

    Safe inside a line, a table cell or an element; ``as_item`` is for the start of a line. Not for
    attributes. ``longest`` is the characters kept before the text is cut with an ellipsis. In what
    comes nothing is markup, a mention or a link, and nothing steers a display.
    """
    return _without_commits(_harmless(_MARKUP.sub(_BACKSLASH, _shortened(text, longest))))


def in_html(text: str, longest: int = 300) -> str:
    """Write a text inside a block of HTML, where Markdown is not read; else as ``escape``."""
    return _without_commits(_harmless(_shortened(text, longest)))


def as_title(text: str) -> str:
    """Write a text as a title, which is no Markdown: nothing in it is a mention or a link."""
    return _NAMES.sub(rf"\g<0>{_BREAK}", _ADDRESSES.sub(_BREAK, one_line(text)))


def as_code(text: str, longest: int = 300) -> str:
    """Write a text as code, else as ``escape``; GitHub looks for no commit there."""
    return f"<code>{_harmless(_MARKUP.sub(_BACKSLASH, _shortened(text, longest)))}</code>"


def as_item(text: str) -> str:
    """Write a text as one item of a list, whatever it begins with."""
    line = escape(text)
    return f"- {_BREAK}{line}" if _LIST_START.match(line) else f"- {line}"


def one_line(text: str) -> str:
    """Fold white space into single blanks and write what steers a display as an escape."""
    return visible(" ".join(text.split()))


def _shortened(text: str, longest: int) -> str:
    return _cut(one_line(text), longest)


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else line[:longest] + _ELLIPSIS


def _harmless(line: str) -> str:
    line = _NAMES.sub(rf"\g<0>{_BREAK}", line)
    return _ADDRESSES.sub(_GAP, "".join(_ENTITIES.get(mark, mark) for mark in line))


def _without_commits(line: str) -> str:
    return _COMMITS.sub(lambda found: _PIECES.sub(rf"\g<0>{_GAP}", found[0]), line)


def fenced(command: str) -> str:
    """Put one line into a code block that the line itself cannot close."""
    return _fence([one_line(command)])


def fenced_lines(text: str, most: int) -> str:
    """Put the last lines of a text, 200 characters of each, into a block that none can close."""
    return _fence(last_lines(text, most))


def _fence(lines: Sequence[str]) -> str:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([fence, *lines, fence])


def last_lines(text: str, most: int) -> list[str]:
    """Give the last lines of a text that are not empty, each harmless on a display."""
    lines = [line for line in text.splitlines() if line.strip()][-most:]
    # The indentation of a line is kept, its colours are not.
    shown = (visible(_COLOUR.sub("", line).expandtabs(4).rstrip()) for line in lines)
    return [_cut(line, _LONGEST_LINE) for line in shown]


@dataclass(frozen=True, slots=True)
class Page:
    """GitHub-flavoured Markdown within a limit, and names of the parts that did not fit."""

    text: str
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A paragraph or more, named if it does not fit; a smaller weight gets its place sooner."""

    text: str
    name: str
    weight: int


def cut_page(parts: Iterable[TextPart], end: str, limit: int) -> Page:
    """Lay parts on a page in their order, as many as fit into ``limit`` bytes with ``end``."""
    wanted = [part for part in parts if part.text]
    room = limit - len(end.encode()) - _NOTICE_ROOM
    kept: set[int] = set()
    for place, part in sorted(enumerate(wanted), key=lambda item: (item[1].weight, item[0])):
        size = len(part.text.encode()) + len("\n\n")
        if size <= room:
            kept.add(place)
            room -= size
    shown = [part.text for place, part in enumerate(wanted) if place in kept]
    left_out = tuple(part.name for place, part in enumerate(wanted) if place not in kept)
    if left_out:
        shown.append(_left_out_notice(left_out))
    return Page("\n\n".join([*shown, end]), left_out)


def _left_out_notice(left_out: Sequence[str]) -> str:
    more = len(left_out) - _NAMED
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"**Too long for one comment:** left out here: {', '.join(left_out[:_NAMED])}{rest}. The "
        "job summary of the workflow run that wrote this has all of it."
    )
