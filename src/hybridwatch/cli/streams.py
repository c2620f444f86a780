"""Output in characters that the reader's terminal has; says why where it cannot be written."""

import codecs
import contextlib
import errno
import io
import os
import sys
from typing import Final

NOBODY_READS: Final = 141
"""What shells expect of a command whose reader has left: 128 + SIGPIPE."""
IN_ASCII: Final = "hybridwatch.in_ascii"
"""How a stream treats characters that it cannot encode."""
_STAND_INS: Final = str.maketrans(
    {
        "\u2716": "x",
        "\u2717": "X",
        "\u2714": "=",
        "\u25b2": "^",
        "\u2205": "-",
        "\u2260": "#",
        "\u2192": "->",
        "\u2026": "...",
        "\u00b7": "-",
        "\u00b5": "u",
        "\u2212": "-",
        "\N{NO-BREAK SPACE}": " ",
    }
)
"""A mark's is as wide as the mark, since tables are laid out before, and never the ``?`` that is a
verdict of its own."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def write_any_character() -> None:
    """Let streams write what they cannot encode in characters that they can."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):
                stream.reconfigure(errors=IN_ASCII)


def unwritten(error: OSError) -> str | None:
    """Say why an answer could not be written; ``None`` for any other error.

    Nothing more is written to standard output then: Python would try once more when it ends, and
    leave with a status of its own.
    """
    if not (isinstance(error, BrokenPipeError) or error.errno in _FULL):
        return None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}cannot be written: {error.strerror or error}"


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_STAND_INS)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(IN_ASCII, _in_ascii)
