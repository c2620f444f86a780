"""What a version stands for, kept beside it: whoever moves one without the other is told."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.conftest import Golden

_DIGITS: Final = 10
"""Significant digits that count: the last ones are up to the processor's logarithms."""


@dataclass(frozen=True, slots=True)
class Version:
    """A number in the code that must be raised when what it stands for moves."""

    name: str
    number: int | str
    of: str


def digest(value: Any) -> str:
    """Shorten plain JSON to a word that is the same on every processor."""
    text = json.dumps(_rounded(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_version(golden: Golden, name: str, version: Version, found: Mapping[str, Any]) -> None:
    """Hold what a version stands for against what was reviewed under it.

    What is found but was not reviewed, such as a record of last night, does not count until the
    version is raised.
    """
    digests = {key: digest(value) for key, value in sorted(found.items())}
    path = golden.folder / name
    known = json.loads(path.read_text()) if path.is_file() else {"version": None, "digests": {}}
    if known["version"] == version.number:
        reviewed = known["digests"]
        moved = [key for key in reviewed if key in digests and digests[key] != reviewed[key]]
        if moved:
            pytest.fail(f"{version.of} moved: raise {version.name} ({', '.join(moved)})")
        digests = reviewed
    golden.check(name, f"{json.dumps({'version': version.number, 'digests': digests}, indent=1)}\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if math.isfinite(value) else repr(value)
    return value if isinstance(value, int | str | None) else str(value)
