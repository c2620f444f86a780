"""Reading runs back, one or all.

Reading all never fails for one bad file: the dashboard shows the rest and names the broken one.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hybridwatch.errors import RecordError
from hybridwatch.record.bounds import MOST_BULK_BYTES, MOST_RECORD_BYTES
from hybridwatch.record.codec import Decoded, decode_record
from hybridwatch.record.run import Run
from hybridwatch.store.heading import HEAD, Question, question_of, read_question
from hybridwatch.store.layout import folder_of, list_records, results_above
from hybridwatch.store.mirror import mirror_at
from hybridwatch.store.pruned import pruned_files
from hybridwatch.store.reading import read_file, read_head


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
    """Everything a store holds.

    Attributes:
        runs: Oldest first.
        broken: What could not be read, oldest first.
    """

    runs: tuple[Stored, ...]
    broken: tuple[Broken, ...]


class RecordReader:
    """Reads records, each once however often it is wanted; what lies beside them as it is needed.

    Every ``RecordError`` says what is missing or damaged and begins with the record's path.
    """

    def __init__(self) -> None:
        self._decoded: dict[Path, Decoded] = {}

    def bare(self, path: Path) -> Run:
        """Give a run without the answers and client results beside its record."""
        with _naming(path):
            return self._record(path).run

    def whole(self, path: Path) -> Run:
        """Give a run with the answers and client results beside its record.

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

    Args:
        path: The record.
        bulk: Whether to read the answers and client results beside it too.

    Raises:
        RecordError: A file is missing or damaged; the message begins with the record's path.
    """
    reader = RecordReader()
    return reader.whole(path) if bulk else reader.bare(path)


def is_pruned(record: Path, name: str) -> bool:
    """Whether the file beside a record was thrown away on purpose.

    Raises:
        RecordError: What is noted of such files cannot be read.
    """
    path = record.with_name(name)
    if path.exists():
        return False
    results = results_above(record)
    return path.relative_to(results).as_posix() in pruned_files(results)


def read_bulk(record: Path, name: str) -> bytes:
    """Read the file beside a record.

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


def read_alike(results: Path, run: Run, labels: Collection[str], newest: int) -> tuple[Run, ...]:
    """Read the newest runs of a scenario on a testbed that have one of some builds.

    Only these are parsed: the others are recognized by the bytes of their scenario's digest and of
    their labels, so a long history costs little. Records that cannot be read are left out.

    Args:
        results: The results folder.
        run: Whose scenario and testbed; it is left out itself.
        labels: Of builds.
        newest: How many runs at most.

    Returns:
        Oldest first, without answers.
    """
    wanted = json.dumps(run.scenario.digest).encode()
    builds = [json.dumps(label, ensure_ascii=False).encode() for label in labels]
    found: list[Run] = []
    for path in reversed(list_records(results, folder_of(results, run))):
        if len(found) == newest:
            break
        try:
            record = read_file(path, MOST_RECORD_BYTES)
            if wanted in record and any(build in record for build in builds):
                other = decode_record(record).run
                if _is_alike(other, run, labels):
                    found.append(other)
        except (OSError, RecordError):
            continue
    return tuple(reversed(found))


def _is_alike(other: Run, run: Run, labels: Collection[str]) -> bool:
    return (
        other.id != run.id
        and other.scenario == run.scenario
        and other.testbed.id == run.testbed.id
        and any(build.label in labels for build in other.builds)
    )


def read_newest(results: Path, reader: RecordReader | None = None) -> StoreContents:
    """Read the newest run for every question: scenario, testbed and series of builds.

    An older record of a question that has been read is recognized by its heading and left unread:
    nothing hangs on it, so it may even be damaged behind that.

    Args:
        results: The results folder; one that does not exist is an empty store.
        reader: Who reads them, to be kept by a caller who will want some of them whole.

    Returns:
        Those runs, without answers, and whatever else could not be read: nobody knows what a
        newer record or one without a known question would have decided.
    """
    reader = reader or RecordReader()
    newest: dict[Question, Stored] = {}
    broken: list[Broken] = []
    for path in reversed(list_records(results)):
        try:
            if read_question(read_head(path, HEAD)) in newest:
                continue
            run = reader.bare(path)
        except OSError as error:
            broken.append(Broken(path, f"cannot be read: {error.strerror or error}"))
        except RecordError as error:
            broken.append(Broken(path, str(error).removeprefix(f"{path}: ")))
        else:
            newest.setdefault(question_of(run), Stored(path, run))
    return StoreContents(tuple(reversed(newest.values())), tuple(reversed(broken)))
