"""A store as the dashboard sees it: every record with its report, and the broken ones by name."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from hybridwatch.analysis.report import report_of
from hybridwatch.errors import HybridwatchError, RecordError
from hybridwatch.record.naming import BULK_SUFFIX
from hybridwatch.record.run import Run
from hybridwatch.store import Broken, list_records, read_run
from hybridwatch.views.history import Entry, age


@dataclass(frozen=True, slots=True)
class Listed:
    """A record that lies in the store, not yet read.

    Attributes:
        path: The record.
        stamps: Change when the record or the file beside it changes; ``None`` for a missing one.
    """

    path: str
    stamps: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that can be shown.

    Attributes:
        entries: Oldest first.
        broken: Records that could not be read.
    """

    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]

    def of_scenario(self, scenario_id: str) -> list[Entry]:
        """Give one scenario's entries, newest first."""
        return [e for e in reversed(self.entries) if e.run.scenario.id == scenario_id]

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


def listed(results: Path) -> list[Listed]:
    """List a store without reading it, so that a reader can keep what did not change.

    Args:
        results: The results folder.

    Returns:
        Oldest first.
    """
    return [
        Listed(str(path), (_stamp(path), _stamp(path.with_name(path.stem + BULK_SUFFIX))))
        for path in list_records(results)
    ]


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


def summary_of(board: Board, now: datetime) -> str:
    """Say in one line what the board rests on.

    Args:
        board: The board.
        now: Ages count back from here.
    """
    if not board.entries:
        return "no readable record"
    testbeds = len({entry.run.testbed.id for entry in board.entries})
    newest = max(entry.run.started_at for entry in board.entries)
    return (
        f"{counted(len(board.entries), 'record')} from {counted(testbeds, 'testbed')}, "
        f"newest {age(newest, now)}"
    )


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 record``, ``12 records``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _slim(run: Run) -> Run:
    trials = (replace(trial, answers=(), client_result=None) for trial in run.trials)
    return replace(run, trials=tuple(trials))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None  # deleted since it was listed: the reader will say so
    return status.st_mtime_ns, status.st_size
