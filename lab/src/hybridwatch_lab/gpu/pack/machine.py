"""What a machine has already, as pip lists it there."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from hybridwatch.errors import BuildError

_FROZEN: Final = re.compile(r"([A-Za-z0-9._-]+)===?(\S+)")
_COLUMNS: Final = re.compile(r"([A-Za-z0-9._-]+)\s+(\d\S*)(\s+\S.*)?")
_NO_PACKAGE: Final = re.compile(r"$|#|-+(\s+-+)+$|Package\s+Version\b|WARNING:|\[notice\]")
"""Lines without a package: a comment, the head of a table, what pip says of itself."""
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Machine:
    """What is installed there.

    Attributes:
        source: The file that says so, by its name.
        packages: Version by name; names as pip compares them.
        python: Its Python, such as ``3.12``; empty where the file does not say.
    """

    source: str
    packages: Mapping[str, Version]
    python: str = ""


def read_machine(path: Path) -> Machine:
    """Read a file in which pip lists what is installed.

    Args:
        path: What ``pip list`` printed (as a table, ``--format json`` or ``freeze``), ``pip
            freeze`` or ``pip inspect``.

    Raises:
        BuildError: It cannot be read, or a line of it names no package and version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"{path}: cannot be read: {error}") from error
    if text.lstrip()[:1] in {"[", "{"} and not text.lstrip().startswith("[notice]"):
        pairs, python = _of_json(path, text)
    else:
        pairs, python = list(_of_lines(path, text)), ""
    if not pairs:
        raise BuildError(f"{path}: expected what `pip list` prints, found no package")
    versions: dict[str, Version] = {
        canonicalize_name(name): _version(path, name, text) for name, text in pairs
    }
    return Machine(path.name, versions, python)


def _of_json(path: Path, text: str) -> tuple[list[tuple[str, str]], str]:
    try:
        found = json.loads(text)
        if isinstance(found, list):
            return [(one["name"], one["version"]) for one in found], ""
        facts: Mapping[str, Any] = found["environment"]
        installed = [one["metadata"] for one in found["installed"]]
        return [(one["name"], one["version"]) for one in installed], facts["python_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(
            f"{path}: expected `pip list --format json` or `pip inspect`: {error!r}"
        ) from error


def _of_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if _NO_PACKAGE.match(line):
            continue
        found = _FROZEN.fullmatch(line) or _COLUMNS.fullmatch(line)
        if not found:
            raise BuildError(
                f"{path}: line {number}: expected a package and its version, "
                f"found {line[:_SHOWN]!r}; use `pip list --format json`"
            )
        yield found[1], found[2]


def _version(path: Path, name: str, text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise BuildError(f"{path}: {name}: expected a version, found {text!r}") from error
