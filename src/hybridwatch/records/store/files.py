"""Writing runs so that a reader never sees half of one; and journals, a line of JSON an entry.

The bulk comes first and the record last: the record is the commit point, and a bulk without a
record (a killed process) is never read. Many are written together: waiting for the disk takes long.
"""

import contextlib
import os
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from hybridwatch.errors import RecordConflictError, RecordError
from hybridwatch.records.codec import Encoded, decode, encode
from hybridwatch.records.fields import MOST_RECORD_BYTES
from hybridwatch.records.file_parts import RECORD_SUFFIX, name_bulk
from hybridwatch.records.json_checks import describe_first
from hybridwatch.records.run import Run
from hybridwatch.records.store.layout import RECORDS, find_folder, list_records, read_run_id
from hybridwatch.records.store.mirror import adding, mirror_at
from hybridwatch.records.store.reader import naming, read_file, read_run
from hybridwatch.system.files import claimed_folder, create_all, hidden, make_folder, named_errors


def write_run(results: Path, run: Run) -> Path:
    """Add a run to the store and give the path of its record, once the files have reached the disk.

    A run that cannot be encoded or written, or is there already, is a ``RecordError``; nothing of
    it is left behind then.
    """
    return write_all(results, [(run, encode(run))])[0]


def write_all(results: Path, runs: Sequence[tuple[Run, Encoded]]) -> list[Path]:
    """Add runs whose bytes are there already, all of them or none; as ``write_run``."""
    bulks: list[tuple[Path, bytes]] = []
    records: list[tuple[Path, bytes]] = []
    for run, encoded in runs:
        folder = find_folder(results, run)
        records.append((folder / (encoded.stem + RECORD_SUFFIX), encoded.record))
        if encoded.bulk is not None:
            bulks.append((name_bulk(records[-1][0]), encoded.bulk))
    folders = sorted({path.parent for path, _ in records})
    for folder in folders:
        make_folder(folder)
    made: list[Path] = []
    written = [path for path, _ in (*bulks, *records)]
    try:
        # An interrupt (Ctrl-C) must not leave half a run either.
        with adding(results, written), ExitStack() as claims, ExitStack() as on_error:
            for folder in folders:
                claims.enter_context(claimed_folder(folder))
            for path, _ in records:
                if not path.exists():
                    name_bulk(path).unlink(missing_ok=True)
            on_error.callback(_remove, made)
            create_all(bulks, made)
            create_all(records, made)
            on_error.pop_all()
    except FileExistsError as error:
        names = " or ".join(run.id for run, _ in runs)
        raise RecordError(
            f"{records[0][0].parent}: run {names} is there already; records never change"
        ) from error
    except OSError as error:
        where = records[0][0].parent
        raise RecordError(f"{where}: cannot be written: {error.strerror or error}") from error
    return [path for path, _ in records]


def check_writable(results: Path) -> None:
    """Find out before hours of measuring if the outcome can be kept; ``RecordError`` if not."""
    folder = results / RECORDS
    make_folder(folder)
    probe = folder / hidden("writable")
    with named_errors(folder):
        probe.write_bytes(b"hybridwatch")
        probe.unlink()
    if mirror := mirror_at(results):
        mirror.check_writable()


def _remove(made: list[Path]) -> None:
    for path in reversed(made):  # the record before the bulk it names
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


BATCH: Final = 100


@dataclass(slots=True)
class Intake:
    """A store that records are being added to."""

    results: Path
    _known: dict[str, Path] = field(init=False)
    _waiting: dict[str, tuple[Run, Encoded]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {read_run_id(path): path for path in list_records(self.results)}

    @property
    def is_full(self) -> bool:
        """Whether it is time to write what waits."""
        return len(self._waiting) >= BATCH

    def find(self, run_id: str) -> Path | None:
        """Name the record that a run has here, or will have."""
        return self._known.get(run_id)

    def held(self, run_id: str) -> Run | None:
        """Give a run that is here, or will be."""
        if run_id in self._waiting:
            encoded = self._waiting[run_id][1]
            return decode(encoded.record, encoded.bulk)
        there = self._known.get(run_id)
        return None if there is None else read_run(there)

    def add(self, run: Run, encoded: Encoded) -> bool:
        """Take a record in; ``False`` when the very same record is there already."""
        there = self._known.get(run.id)
        if there is None:
            self._known[run.id] = find_folder(self.results, run) / (encoded.stem + RECORD_SUFFIX)
            self._waiting[run.id] = run, encoded
            return True
        waiting = self._waiting.get(run.id)
        with naming(there):
            held = waiting[1].record if waiting else read_file(there, MOST_RECORD_BYTES)
        if held == encoded.record:
            return False
        raise RecordConflictError(
            f"run {run.id} is there already as {there}, and says something else; records never "
            "change"
        )

    def write(self) -> dict[str, str]:
        """Write what waits, and give by run id why one could not be; the others are on the disk."""
        waiting, self._waiting = self._waiting, {}
        try:
            write_all(self.results, list(waiting.values()))
        except RecordError:
            # One of them is the culprit: alone each shows it for itself.
            return self._write_singly(waiting)
        return {}

    def _write_singly(self, waiting: dict[str, tuple[Run, Encoded]]) -> dict[str, str]:
        failed: dict[str, str] = {}
        for run_id, one in waiting.items():
            try:
                write_all(self.results, [one])
            except RecordError as error:
                failed[run_id] = str(error)
                del self._known[run_id]
        return failed


def take_in(results: Path, run: Run, encoded: Encoded) -> bool:
    """Take one record in, while others may do the same; ``False`` if the same is there already."""
    intake = Intake(results)
    if not intake.add(run, encoded):
        return False
    failed = intake.write()
    if not failed:
        return True
    # Perhaps another process was faster: then it is listed now.
    if not Intake(results).add(run, encoded):
        return False
    raise RecordError(failed[run.id])


class JournalEntry(BaseModel):
    """What a line is; a later one of the same ``key`` takes its place."""

    @property
    def key(self) -> Hashable:
        """Which entry of the table it is."""
        raise NotImplementedError


_Entry = TypeVar("_Entry", bound=JournalEntry)


def read_entries(path: Path, kind: type[_Entry]) -> list[_Entry]:
    """Give the newest entry of each key, in the order in which they came.

    A last line that was cut short is left out; any other that is no entry is a ``RecordError``.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from None
    newest: dict[Hashable, _Entry] = {}
    for number, line in enumerate(lines, start=1):
        try:
            entry = kind.model_validate_json(line)
        except ValidationError as error:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise RecordError(f"{path}:{number}: {describe_first(error)}") from None
        newest.pop(entry.key, None)
        newest[entry.key] = entry
    return list(newest.values())


def append_entry(path: Path, entry: JournalEntry) -> None:
    """Add a line, and return when it would survive a power cut."""
    append_line(path, entry.model_dump_json())


def append_line(path: Path, line: str) -> None:
    """Add a line, in the place of one that was cut short, and wait until it reached the disk."""
    with named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":
                    file.truncate(path.read_bytes().rfind(b"\n") + 1)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
