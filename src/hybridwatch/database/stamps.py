"""Which records a store holds, and whether they are still those that were read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hybridwatch.records.file_parts import BULK_SUFFIX
from hybridwatch.records.store import list_records
from hybridwatch.records.store.layout import results_above
from hybridwatch.records.store.mirror import Mirror, mirror_at

_ABSENT = (-1, -1)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes when a record, or the file next to it, is replaced; -1 stands for a missing file.

    When each file was last written, in nanoseconds since 1970, and its length in bytes; ``bulk`` is
    the file of answers.
    """

    record_ns: int
    record_size: int
    bulk_ns: int
    bulk_size: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A record that lies in the store, not yet read."""

    path: Path
    stamp: Stamp


def list_stamped(results: Path) -> dict[str, Listed]:
    """List a store without reading it: by path below the results folder, oldest run first.

    A folder that does not exist has no records.
    """
    records = list_records(results)
    stamp = _stamp_in(mirror_at(results))
    return {
        printable(path.relative_to(results).as_posix()): Listed(path, stamp(path))
        for path in records
    }


def printable(text: str) -> str:
    """Write what is no Unicode, such as a file name of another alphabet, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_stamp(path: Path) -> Stamp:
    """Give what changes when a record, or the file next to it, is replaced."""
    return _stamp_in(mirror_at(results_above(path)))(path)


def _stamp_in(mirror: Mirror | None) -> Callable[[Path], Stamp]:
    """Give what stamps the records of a folder.

    In a mirror a file was written when it was fetched, which says nothing, and the file next to a
    record may not have been fetched: sizes alone are the same on every machine.
    """
    written = _written if mirror is None else partial(_in_store, mirror)
    return lambda path: Stamp(*written(path), *written(path.with_name(path.stem + BULK_SUFFIX)))


def _in_store(mirror: Mirror, path: Path) -> tuple[int, int]:
    size = mirror.size(path)
    return _ABSENT if size is None else (0, size)


def _written(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return _ABSENT  # deleted since it was listed: the reader will say so
    return status.st_mtime_ns, status.st_size
