"""Which records a store holds, and whether they are still those that were read."""

from dataclasses import dataclass
from pathlib import Path

from hybridwatch.record.naming import BULK_SUFFIX
from hybridwatch.store import list_records

_ABSENT = (-1, -1)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes when a record, or the file beside it, is replaced; -1 stands for a missing file.

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
    """List a store without reading it.

    Args:
        results: The results folder; one that does not exist has no records.

    Returns:
        By path below the results folder, oldest run first.
    """
    return {
        printable(path.relative_to(results).as_posix()): Listed(path, stamp_of(path))
        for path in list_records(results)
    }


def printable(text: str) -> str:
    """Write what is no Unicode, such as a file name of another alphabet, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def stamp_of(path: Path) -> Stamp:
    """Give what changes when a record, or the file beside it, is replaced."""
    bulk = path.with_name(path.stem + BULK_SUFFIX)
    return Stamp(*_written(path), *_written(bulk))


def _written(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return _ABSENT  # deleted since it was listed: the reader will say so
    return status.st_mtime_ns, status.st_size
