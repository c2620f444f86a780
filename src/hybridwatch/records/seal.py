"""A record's digest over its own bytes: one flipped bit anywhere in the file is found.

It stands on a line of its own and is the SHA-256 of the file without that line, so that
``grep -v '^  "sha256": ' RECORD | sha256sum`` gives it too. It is over bytes, not over what they
decode to: a record never changes, this way nothing that is decoded hangs on the check, and it
takes a twentieth of the time that decoding takes. What reformats a record breaks its digest.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from hybridwatch.errors import RecordError
from hybridwatch.records.pretty import pretty

KEY: Final = "sha256"

NO_DIGEST: Final = "no digest"
"""How a list of records calls one of schema version 1: damage in it need not show."""

# No other line of a record begins so: a line break inside a JSON text is written as an escape, and
# keys further inside are indented further.
_LINE: Final = re.compile(rb'^  "sha256": "([0-9a-f]{64})",\n', re.MULTILINE)
_UNKNOWN: Final = "0" * 64


def render_sealed(content: Mapping[str, Any]) -> str:
    """Render a record with its digest; a digest among the keys of ``content`` is left out.

    Raises:
        UnicodeEncodeError: A text is no Unicode.
        ValueError: A number is infinite or no number.
    """
    text = pretty({**content, KEY: _UNKNOWN}) + "\n"
    digest, _ = _taken_apart(text.encode())
    return text.replace(f'\n  "{KEY}": "{_UNKNOWN}"', f'\n  "{KEY}": "{digest}"', 1)


def check_seal(record: bytes, stated: str) -> None:
    """Check that a record is as it was written; ``stated`` is the digest as it was decoded."""
    found, line = _taken_apart(record)
    if found != stated or line != stated:
        raise RecordError(
            f"{KEY}: expected {stated}, found {found}: the file is not as it was written"
        )


def is_altered(record: bytes) -> bool:
    """Whether a record, which need not decode, has a digest and is not as it was written."""
    line = _LINE.search(record)
    return line is not None and _taken_apart(record)[0] != line[1].decode()


def _taken_apart(record: bytes) -> tuple[str, str]:
    """Give the digest that a record should have, and the one that stands on its line."""
    line = _LINE.search(record)
    if line is None:
        raise RecordError(
            f"{KEY}: expected on a line of its own, as it was written, found none: the file was "
            "laid out again, or its line ends were changed"
        )
    total = hashlib.sha256(memoryview(record)[: line.start()])
    total.update(memoryview(record)[line.end() :])
    return total.hexdigest(), line[1].decode()
