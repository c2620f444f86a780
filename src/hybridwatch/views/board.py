"""A record as the dashboard sees it: with its report, or named as broken."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hybridwatch.analysis.report import report_of
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.record.naming import BULK_SUFFIX
from hybridwatch.record.run import Run
from hybridwatch.store import Broken, read_run
from hybridwatch.views.history import Entry


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that can be shown.

    Attributes:
        entries: Oldest first.
        broken: Records that could not be read.
    """

    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]

    def beside(self, entry: Entry) -> list[Entry]:
        """Give the entries whose numbers may be laid beside one entry's, oldest first.

        Those of the same scenario and version on the same testbed, itself included.
        """
        run = entry.run
        mine = (run.scenario.id, run.scenario.version, run.testbed.id)
        return [
            each
            for each in self.entries
            if (each.run.scenario.id, each.run.scenario.version, each.run.testbed.id) == mine
        ]


def stamps_of(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Give what changes when a record or the file beside it changes."""
    return _stamp(path), _stamp(path.with_name(path.stem + BULK_SUFFIX))


def entry_of(path: Path) -> Entry | Broken:
    """Read one record and judge it.

    Args:
        path: The record.

    Returns:
        The run with its report but without the answers (the report keeps those that flipped),
        or the record's name and what is wrong with it.
    """
    try:
        run = read_run(path)
    except RecordError as error:
        return Broken(path, str(error).removeprefix(f"{path}: "))
    try:
        return Entry(path, _slim(run), report_of(run))
    except HybridwatchError as error:
        return Entry(path, _slim(run), None, str(error))


def board_of(found: Iterable[Entry | Broken]) -> Board:
    """Sort what was read into what can be shown and what cannot."""
    everything = list(found)
    return Board(
        tuple(each for each in everything if isinstance(each, Entry)),
        tuple(each for each in everything if isinstance(each, Broken)),
    )


def _slim(run: Run) -> Run:
    trials = (replace(trial, answers=(), client_result=None) for trial in run.trials)
    return replace(run, trials=tuple(trials))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None  # deleted since it was listed: the reader will say so
    return status.st_mtime_ns, status.st_size
