"""Fitting a text into a limit: what matters most gets its place first, the rest is named."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_NAMED: Final = 4
_NOTICE_ROOM: Final = 4096
"""Bytes kept for saying what was left out; four names of 100 characters, escaped, take less."""


@dataclass(frozen=True, slots=True)
class Page:
    """A text within a limit.

    Attributes:
        text: GitHub-flavoured Markdown, ending in a newline.
        left_out: Names of the parts that did not fit.
    """

    text: str
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A paragraph or more.

    Attributes:
        name: What it is called when it does not fit.
        weight: The smaller, the sooner it gets its place.
    """

    text: str
    name: str
    weight: int


def cut_page(parts: Iterable[TextPart], end: str, limit: int) -> Page:
    """Lay parts on a page in their order, as many as there is room for.

    ``end`` is the last line, always there. ``limit`` is in bytes: a text has no more characters
    than these.
    """
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
        shown.append(_notice(left_out))
    return Page("\n\n".join([*shown, end]), left_out)


def _notice(left_out: Sequence[str]) -> str:
    more = len(left_out) - _NAMED
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"**Too long for one comment:** left out here: {', '.join(left_out[:_NAMED])}{rest}. The "
        "job summary of the workflow run that wrote this has all of it."
    )
