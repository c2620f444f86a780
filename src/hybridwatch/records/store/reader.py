"""Reading back runs, one or all, and what people wrote next to them.

Reading all never fails for one bad file. Whether a file is a plain one of a size that fits is
looked at before it is opened: a pipe would wait, and a device be read without end.

Pinned baselines are in ``baselines.toml`` (``results/README.md`` has its form), and the ids of runs
that came with the repository in ``examples.txt``: none of those is ever overdue.
"""

import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import Decoded, decode_record
from hybridwatch.records.fields import MOST_BULK_BYTES, MOST_RECORD_BYTES
from hybridwatch.records.json_checks import describe_first
from hybridwatch.records.run import Run
from hybridwatch.records.store.layout import pruned_files, results_above
from hybridwatch.records.store.mirror import mirror_at, refreshed
from hybridwatch.scenarios.validation import Part

_NOUNS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def read_file(path: Path, most: int) -> bytes:
    """Read a regular file of at most ``most`` bytes, or what a link to one leads to.

    A ``RecordError`` says in one line that it is no such file, and does not name it.
    """
    size = _checked(path.stat(), most)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        _checked(os.fstat(descriptor), most)  # another one may have taken its place
        content = file.read(size + 1)
        if len(content) > size:  # it grew
            content += file.read(most + 1 - len(content))
    if len(content) > most:
        raise RecordError(_too_large(most, len(content)))
    return content


def _checked(status: os.stat_result, most: int) -> int:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise RecordError(f"expected a regular file, found {_NOUNS.get(kind, 'something else')}")
    if status.st_size > most:
        raise RecordError(_too_large(most, status.st_size))
    return status.st_size


def _too_large(most: int, found: int) -> str:
    return f"expected at most {most} bytes, found {found}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A run and the record it was read from."""

    path: Path
    run: Run


@dataclass(frozen=True, slots=True)
class Broken:
    """A record that could not be read, and why, in one line."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class StoreContents:
    """Everything a store holds, oldest first; ``broken`` is what could not be read."""

    runs: tuple[Stored, ...]
    broken: tuple[Broken, ...]


class RecordReader:
    """Reads records, each once however often it is wanted; the file next to one as it is needed.

    Every ``RecordError`` begins with the record's path.
    """

    def __init__(self) -> None:
        self._decoded: dict[Path, Decoded] = {}

    def bare(self, path: Path) -> Run:
        """Give a run without the answers and client results next to its record."""
        with naming(path):
            return self._record(path).run

    def whole(self, path: Path) -> Run:
        """Give a run with what lies next to its record, if that was not thrown away on purpose."""
        with naming(path):
            decoded = self._record(path)
            if decoded.bulk is not None and is_pruned(path, decoded.bulk.file):
                return decoded.run
            return decoded.whole(lambda name: read_bulk(path, name))

    def _record(self, path: Path) -> Decoded:
        if path not in self._decoded:
            self._decoded[path] = decode_record(read_file(path, MOST_RECORD_BYTES))
        return self._decoded[path]


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make each error while a file is read, or one next to it, a ``RecordError`` with its path."""
    try:
        yield
    except OSError as error:
        other = "" if str(error.filename or path) == str(path) else f"{error.filename} "
        raise RecordError(f"{path}: {other}cannot be read: {error.strerror or error}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def read_run(path: Path, bulk: bool = True) -> Run:
    """Read one record, with the answers and client results next to it unless not ``bulk``."""
    reader = RecordReader()
    return reader.whole(path) if bulk else reader.bare(path)


def is_pruned(record: Path, name: str) -> bool:
    """Whether the file next to a record was thrown away on purpose."""
    path = record.with_name(name)
    if path.exists():
        return False
    results = results_above(record)
    return path.relative_to(results).as_posix() in pruned_files(results)


def read_bulk(record: Path, name: str) -> bytes:
    """Read the file next to a record."""
    path = record.with_name(name)
    if not path.exists() and (mirror := mirror_at(results_above(record))):
        mirror.fetch(path)
    try:
        return read_file(path, MOST_BULK_BYTES)
    except RecordError as error:
        raise RecordError(f"{name}: {error}") from error


EXAMPLES: Final = "examples.txt"
BASELINES: Final = "baselines.toml"
_MOST_BYTES: Final = 2**20


def read_examples(results: Path) -> frozenset[str]:
    """Give the ids of a store's examples; none where the file is not there."""
    path = results / EXAMPLES
    try:
        return frozenset(read_file(path, _MOST_BYTES).decode().split())
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, RecordError) as error:
        raise RecordError(f"{path}: expected the ids of runs: {error}") from error


class Baseline(Part):
    """A side of a run that others are held against; ``run`` may be the beginning of its id."""

    scenario: Annotated[str, Field(min_length=1)]
    testbed: Annotated[str, Field(min_length=1)]
    run: Annotated[str, Field(min_length=1)]
    side: Annotated[int, Field(ge=0, le=1)] = 0
    reason: Annotated[str, Field(min_length=1)]
    date: date
    who: str | None = None


class _BaselinesFile(Part):
    baseline: tuple[Baseline, ...] = Field(default=(), strict=False)


def read_baselines(results: Path) -> tuple[Baseline, ...]:
    """Read what is pinned."""
    path = refreshed(results) / BASELINES
    try:
        raw = tomllib.loads(read_file(path, _MOST_BYTES).decode())
    except FileNotFoundError:
        return ()
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: expected TOML: {error}") from error
    try:
        found = _BaselinesFile.model_validate(raw).baseline
    except ValidationError as error:
        raise RecordError(f"{path}: {describe_first(error)}") from error
    seen: set[tuple[str, str]] = set()
    for one in found:
        key = one.scenario, one.testbed
        if key in seen:
            raise RecordError(f"{path}: expected one baseline of {' on '.join(key)}, found two")
        seen.add(key)
    return tuple(found)
