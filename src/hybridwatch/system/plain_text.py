r"""Makes text from files safe to show: in terminals, Markdown, pages and CSV.

Labels, file names and a model's answers may hold characters that cannot be seen and that steer what
shows them: an escape sequence that rewrites a terminal, a mark that turns the direction of a line
around. Everywhere they are written in one way, as Python would: ``\x1b``, ``\u202e``.
"""

import re
from functools import lru_cache
from typing import Final

_UNSEEN: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    "\xad\u061c\u180e\u200b\u200e\u200f"  # soft hyphen, direction marks, zero-width space
    "\u2028-\u202e\u2060-\u206f"  # separators, directions and isolates, invisible operators
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"  # byte order mark, annotations, tags
    "\ud800-\udfff"  # bytes of a file name that are no Unicode
    "]"
)
"""Joiners (U+200C, U+200D) stay: honest words and emoji are made with them, and they steer
nothing."""

_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?: ?%| [a-z]+)?"
_FORMULA: Final = re.compile(
    r"(?:\A|(?<=[;\t\n]))"
    rf"(?!(?:{_NUMBER}|-)[^\S\t\n]*(?:\Z|[;\t\n]))"
    "(?=\\A\t|(?:[^\\S\t\n]|[\"'])*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
)
"""Where a spreadsheet begins to compute: at the start of a cell and, where semicolons or tabs part
cells, after one of those. Blanks and quotes before the sign do not stop it."""

_KEPT: Final = 1024
"""Texts of cells of which what was written is kept: in a column they repeat."""


def visible(text: str) -> str:
    """Write what steers a display as an escape; tabs, line feeds and everything seen stay."""
    # Nearly every text is printable, and that is known in a hundredth of the time.
    if text.isprintable():
        return text
    return _UNSEEN.sub(_escaped, text.replace("\r\n", "\n"))


def csv_cell(value: object) -> object:
    """Give a value that no spreadsheet computes: text is marked, unless it is a plain number."""
    return _text_cell(value) if isinstance(value, str) else value


@lru_cache(maxsize=_KEPT)
def _text_cell(text: str) -> str:
    return _FORMULA.sub("'", visible(text))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
