"""Reading runs back, one or all.

Reading all never fails for one bad file: the dashboard shows the rest and names the broken one.

Reading a file that another person may have put there: a plain one, and of a size that fits.

Both are looked at before the file is opened: opening a pipe waits until something is written to it,
and a device or a file of gigabytes would be read without end.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.bounds import MOST_BULK_BYTES, MOST_RECORD_BYTES
from hybridwatch.records.codec import Decoded, decode_record
from hybridwatch.records.run import Run
from hybridwatch.records.store.layout import results_above
from hybridwatch.records.store.mirror import mirror_at
from hybridwatch.records.store.retention import pruned_files

_NOUNS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def read_file(path: Path, most: int) -> bytes:
    """Read a regular file, or what a link to one leads to.

    ``most`` is how many bytes it may have.

    Raises:
        RecordError: It is no regular file, or larger; in one line, which does not name it.
        OSError: It cannot be read.
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

    Every ``RecordError`` says what is missing or damaged and begins with the record's path.
    """

    def __init__(self) -> None:
        self._decoded: dict[Path, Decoded] = {}

    def bare(self, path: Path) -> Run:
        """Give a run without the answers and client results next to its record."""
        with _naming(path):
            return self._record(path).run

    def whole(self, path: Path) -> Run:
        """Give a run with the answers and client results next to its record.

        Without them, as ``bare``, if they were thrown away on purpose.
        """
        with _naming(path):
            decoded = self._record(path)
            if decoded.bulk is not None and is_pruned(path, decoded.bulk.file):
                return decoded.run
            return decoded.whole(lambda name: read_bulk(path, name))

    def _record(self, path: Path) -> Decoded:
        if path not in self._decoded:
            self._decoded[path] = decode_record(read_file(path, MOST_RECORD_BYTES))
        return self._decoded[path]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        missing = error.filename or path
        raise RecordError(f"{path}: cannot read {missing}: {error.strerror or error}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def read_run(path: Path, bulk: bool = True) -> Run:
    """Read one record.

    ``bulk`` is whether to read the answers and client results next to it too.

    Raises:
        RecordError: A file is missing or damaged; the message begins with the record's path.
    """
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
    """Read the file next to a record.

    Raises:
        RecordError: It is no regular file, or too large.
        OSError: It cannot be read.
    """
    path = record.with_name(name)
    if not path.exists() and (mirror := mirror_at(results_above(record))):
        mirror.fetch(path)
    try:
        return read_file(path, MOST_BULK_BYTES)
    except RecordError as error:
        raise RecordError(f"{name}: {error}") from error
