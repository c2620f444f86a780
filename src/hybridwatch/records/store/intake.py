"""Taking records in that were written elsewhere: byte for byte, whole or not at all, once.

Many are written together, since what takes time is not writing but waiting for the disk.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordConflictError, RecordError
from hybridwatch.records.bounds import MOST_RECORD_BYTES
from hybridwatch.records.codec import Encoded
from hybridwatch.records.naming import RECORD_SUFFIX
from hybridwatch.records.run import Run
from hybridwatch.records.store.files import write_all
from hybridwatch.records.store.layout import find_folder, list_records, read_run_id
from hybridwatch.records.store.reader import read_file, read_run

BATCH: Final = 100


@dataclass(slots=True)
class Intake:
    """A store that records are being added to.

    Attributes:
        results: The results folder; made when the first record comes.
    """

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
            return self._waiting[run_id][0]
        there = self._known.get(run_id)
        return None if there is None else read_run(there)

    def add(self, run: Run, encoded: Encoded) -> bool:
        """Take a record in; ``False`` when the very same record is there already.

        Raises:
            RecordConflictError: The store holds another record of this run.
        """
        there = self._known.get(run.id)
        if there is None:
            self._known[run.id] = find_folder(self.results, run) / (encoded.stem + RECORD_SUFFIX)
            self._waiting[run.id] = run, encoded
            return True
        waiting = self._waiting.get(run.id)
        if (waiting[1].record if waiting else _read_bytes(there)) == encoded.record:
            return False
        raise RecordConflictError(
            f"run {run.id} is there already as {there}, and says something else; records never "
            "change"
        )

    def write(self) -> dict[str, str]:
        """Write what waits.

        Gives, by run id, why a record could not be written; the others have reached the disk.
        """
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
    """Take one record in, while others may do the same; ``False`` if the same is there already.

    Raises:
        RecordConflictError: The store holds another record of this run.
        RecordError: It cannot be written.
    """
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


def _read_bytes(record: Path) -> bytes:
    try:
        return read_file(record, MOST_RECORD_BYTES)
    except RecordError as error:
        raise RecordError(f"{record}: {error}") from error
