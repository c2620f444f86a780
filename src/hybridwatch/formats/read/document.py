"""A JSON file from outside, read key by key; errors name the key."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from hybridwatch.errors import IngestError
from hybridwatch.records.json_checks import check_json_size, cut

_DEEPEST: Final = 64
"""Levels of nesting: no tool writes a third of them, and no record can be read with thousands."""
_MOST_VALUES: Final = 10_000_000
_MOST_PARTS: Final = 4_000_000
"""Lists, objects and keys, which take up to a hundred times their bytes in memory."""
_MOST_LINES: Final = 1_000_000
LIKELY: Final = (".json", ".jsonl")
LARGEST_COMPANION: Final = 64 * 1024**2
_FOLDERS: Final = 256
"""Folders whose parsed files are kept: each file in one needs its neighbours."""


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value inside a document with its path, ``benchmarks[0].metrics``; NaN is ``None``."""

    value: Any
    path: str = ""

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def has(self, *keys: str) -> bool:
        """Whether this is an object with a value under each of these keys."""
        return all(key in self for key in keys)

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

    def first(self, noun: str) -> "DocumentNode":
        """Give the first item of a list; ``noun`` is what one is, for a message."""
        for item in self.each():
            return item
        raise self.wrong(f"at least one {noun}")

    def number(self) -> float:
        """Give a finite number."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        try:
            number = float(self.value) if is_number else math.nan
        except OverflowError:
            number = math.inf
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

    def moment(self, parts: int = 1) -> datetime:
        """Give a time, UTC, from parts of a second since 1970."""
        seconds = self.number() / parts
        try:
            return datetime.fromtimestamp(seconds, tz=UTC)
        except (OverflowError, ValueError, OSError):
            raise self.wrong("a time") from None

    def date(self, example: str) -> datetime:
        """Give a time from a text such as ``example``; where that names no zone it is UTC."""
        try:
            moment = datetime.fromisoformat(self.text())
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (OverflowError, ValueError):
            raise self.wrong(f"a date such as {example}") from None

    def wrong(self, wanted: str) -> IngestError:
        """Say what was expected here, and what is here instead."""
        prefix = f"{self.path}: " if self.path else ""
        return IngestError(f"{prefix}expected {wanted}, found {cut(repr(self.value))}")


@dataclass(frozen=True)
class ForeignDocument:
    """A file of JSON, or JSON lines: where there are several nodes, paths begin with the line."""

    path: Path
    raw: bytes
    nodes: tuple[DocumentNode, ...]

    @property
    def root(self) -> DocumentNode:
        """The only value; nothing where there are several."""
        return self.nodes[0] if len(self.nodes) == 1 else DocumentNode(None)

    @property
    def rows(self) -> Iterator[DocumentNode]:
        """Every value, and for a list its items."""
        for node in self.nodes:
            yield from node.each() if isinstance(node.value, list) else (node,)

    @property
    def first(self) -> DocumentNode:
        """The first of ``rows``; nothing where there is none."""
        return next(self.rows, DocumentNode(None))

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
        check_json_size(raw, _MOST_VALUES, _MOST_PARTS)
    except UnicodeDecodeError as error:
        raise IngestError(f"expected text in UTF-8: {error.reason}") from error
    except ValueError as error:
        raise IngestError(str(error)) from error
    try:
        return ForeignDocument(path, raw, (DocumentNode(_loads(text)),))
    except IngestError:
        if raw.count(b"\n") > _MOST_LINES:
            raise
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0]):
            raise
    nodes = []
    for number, line in enumerate(lines, start=1):
        try:
            nodes.append(DocumentNode(_loads(line), f"line {number}"))
        except IngestError as error:
            raise IngestError(f"line {number}: {error}") from error
    return ForeignDocument(path, raw, tuple(nodes))


@lru_cache(maxsize=_FOLDERS)
def read_folder(folder: Path) -> Sequence[ForeignDocument]:
    """Read what is named like JSON; what cannot be read is reported when it is ingested itself."""
    return tuple(_parsed(path for path in sorted(folder.iterdir()) if path.suffix in LIKELY))


def _parsed(paths: Iterable[Path]) -> Iterator[ForeignDocument]:
    for path in paths:
        try:
            if path.is_file() and path.stat().st_size <= LARGEST_COMPANION:
                yield parse(path, path.read_bytes())
        except (OSError, IngestError):
            continue


def _is_json(text: str) -> bool:
    try:
        _loads(text)
    except IngestError:
        return False
    return True


def _loads(text: str) -> Any:
    try:
        # Infinity, too: asv writes it for an interval of nothing.
        value = json.loads(text, parse_constant=lambda _: None)
        _check_depth([value])
    except RecursionError as error:
        raise IngestError(f"expected JSON of at most {_DEEPEST} levels: {error}") from error
    except ValueError as error:
        wanted = "expected JSON, the file may have been cut short"
        raise IngestError(f"{wanted}: {error}") from error
    return value


def _check_depth(level: list[Any]) -> None:
    for _ in range(_DEEPEST + 2):
        items = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for inner in items for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    raise RecursionError(f"nested deeper than {_DEEPEST} levels")
