"""A JSON file from outside, and reading it key by key with errors that name the key."""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import IngestError

_DEEPEST: Final = 64
"""Levels of nesting: no tool writes a third of them, and no record can be read with thousands."""
_SHOWN: Final = 60
"""How much of a wrong value an error message repeats."""


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value inside a document, and the path to it.

    Attributes:
        value: As ``json`` reads it; NaN is ``None``, since no record knows it.
        path: Such as ``benchmarks[0].metrics``; empty for the whole.
    """

    value: Any
    path: str = ""

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def at(self, *keys: str) -> "DocumentNode":
        """Go down by keys."""
        node = self
        for key in keys:
            if not isinstance(node.value, dict):
                raise node.wrong("an object")
            path = f"{node.path}.{key}".lstrip(".")
            if key not in node.value:
                raise IngestError(f"{path}: expected a value, found nothing")
            node = DocumentNode(node.value[key], path)
        return node

    def items(self) -> Iterator[tuple[str, "DocumentNode"]]:
        """Yield keys and values of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        for key in self.value:
            yield key, self.at(key)

    def each(self) -> Iterator["DocumentNode"]:
        """Yield the items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for place, item in enumerate(self.value):
            yield DocumentNode(item, f"{self.path}[{place}]")

    def number(self) -> float:
        """Give a finite number."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong("a finite number")
        try:
            number = float(value)
        except OverflowError:
            raise self.wrong("a finite number") from None
        if not math.isfinite(number):
            raise self.wrong("a finite number")
        return number

    def numbers(self) -> tuple[float, ...]:
        """Give a list of finite numbers."""
        return tuple(item.number() for item in self.each())

    def amount(self) -> float:
        """Give a time, a rate or a count: a finite number that is not negative."""
        number = self.number()
        if number < 0:
            raise self.wrong("a number of at least 0")
        return number

    def amounts(self) -> tuple[float, ...]:
        """Give a list of such numbers."""
        return tuple(item.amount() for item in self.each())

    def count(self) -> int:
        """Give a whole number that is not negative."""
        number = self.amount()
        if not number.is_integer():
            raise self.wrong("a whole number")
        return int(number)

    def text(self) -> str:
        """Give a text."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def moment(self) -> datetime:
        """Give a time from seconds since 1970."""
        return parse_moment(self.number(), self)

    def wrong(self, wanted: str) -> IngestError:
        """Say what was expected here, and what is here instead."""
        text = repr(self.value)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        prefix = f"{self.path}: " if self.path else ""
        return IngestError(f"{prefix}expected {wanted}, found {shown}")


def parse_moment(seconds: float, node: DocumentNode) -> datetime:
    """Turn seconds since 1970 into a time in UTC."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        raise node.wrong("a time") from None


@dataclass(frozen=True)
class ForeignDocument:
    """A file that holds JSON, or JSON lines."""

    path: Path
    raw: bytes
    lines: tuple[Any, ...]

    @property
    def root(self) -> Any:
        """The only value; ``None`` where there are several."""
        return self.lines[0] if len(self.lines) == 1 else None

    @property
    def nodes(self) -> tuple[DocumentNode, ...]:
        """Every value; where there are several, paths begin with the line."""
        if len(self.lines) == 1:
            return (DocumentNode(self.lines[0]),)
        return tuple(
            DocumentNode(line, f"line {place}") for place, line in enumerate(self.lines, start=1)
        )

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def written_at(self) -> datetime:
        """When the file was written last, UTC: all there is for a run whose file has no time."""
        return datetime.fromtimestamp(int(self.path.stat().st_mtime), tz=UTC)


def parse(path: Path, raw: bytes) -> ForeignDocument:
    """Read JSON or JSON lines; the message of an ``IngestError`` names the line."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise IngestError(f"expected text in UTF-8: {error.reason}") from error
    try:
        return ForeignDocument(path, raw, (_loads(text),))
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0]):
            raise IngestError(f"{_not_json(error)}{error}") from error
    return ForeignDocument(
        path, raw, tuple(_line(number, line) for number, line in enumerate(lines, 1))
    )


def _line(number: int, text: str) -> Any:
    try:
        return _loads(text)
    except (ValueError, RecursionError) as error:
        raise IngestError(f"line {number}: {_not_json(error)}{error}") from error


def _not_json(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"expected JSON of at most {_DEEPEST} levels: "
    return "expected JSON, the file may have been cut short: "


def _is_json(text: str) -> bool:
    try:
        _loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _loads(text: str) -> Any:
    # Infinity, too: asv writes it for an interval of nothing.
    value = json.loads(text, parse_constant=lambda _: None)
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [inner for item in level for inner in _containers(item)]
        if not level:
            return
    raise RecursionError(f"nested deeper than {_DEEPEST} levels")


def _containers(value: Any) -> Iterator[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (item for item in inner if isinstance(item, dict | list))
