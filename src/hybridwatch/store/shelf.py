"""Reading runs back, one or all.

Reading all never fails for one bad file: the dashboard shows the rest and names the broken one.
"""

from dataclasses import dataclass
from pathlib import Path

from hybridwatch.errors import RecordError
from hybridwatch.record.codec import bulk_file_of, decode
from hybridwatch.record.run import Run
from hybridwatch.store.layout import list_records


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
class Shelf:
    """Everything a store holds.

    Attributes:
        runs: Oldest first.
        broken: What could not be read, oldest first.
    """

    runs: tuple[Stored, ...]
    broken: tuple[Broken, ...]


def read_run(path: Path, bulk: bool = True) -> Run:
    """Read one record.

    Args:
        path: The record.
        bulk: Whether to read the answers and client results beside it too.

    Returns:
        The run.

    Raises:
        RecordError: A file is missing or damaged; the message begins with the record's path.
    """
    try:
        record = path.read_bytes()
        name = bulk_file_of(record) if bulk else None
        return decode(record, path.with_name(name).read_bytes() if name else None)
    except OSError as error:
        missing = error.filename or path
        raise RecordError(f"{path}: cannot read {missing}: {error.strerror or error}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from error


def read_all(results: Path, bulk: bool = True) -> Shelf:
    """Read every record of a store.

    Args:
        results: The results folder; one that does not exist is an empty store.
        bulk: As for ``read_run``.

    Returns:
        The runs that could be read, and the records that could not.
    """
    runs: list[Stored] = []
    broken: list[Broken] = []
    for path in list_records(results):
        try:
            runs.append(Stored(path, read_run(path, bulk)))
        except RecordError as error:
            broken.append(Broken(path, str(error).removeprefix(f"{path}: ")))
    return Shelf(tuple(runs), tuple(broken))
