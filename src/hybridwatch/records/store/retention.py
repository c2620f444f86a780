"""What may be thrown away when a store grows old, and throwing it away.

Bulk goes first: the answers next to a record are most of its bytes, and without them every number
and verdict but that on accuracy can still be had. Then old records are thinned to one a week. What
is still needed stays whole (``PrunePlan.protected``).

What was removed is noted in ``pruned.jsonl`` before it goes, so that a reader knows the difference
between what was thrown away and what was lost.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.naming import BULK_SUFFIX, parse_start
from hybridwatch.records.store.layout import read_run_id
from hybridwatch.records.store.mirror import mirror_at

PRUNED: Final = "pruned.jsonl"


def note_pruned(results: Path, file: str, digest: str, what: str, now: datetime) -> None:
    """Note a file that is about to be removed; the note reaches the disk first.

    ``file`` is its path below the results folder, ``digest`` the SHA-256 of its bytes; ``now`` has
    a time zone. It is an ``OSError`` if the note cannot be written.
    """
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    line = json.dumps({"file": file, "sha256": digest, "what": what, "at": at})
    with (results / PRUNED).open("a", encoding="utf-8") as notes:
        notes.write(f"{line}\n")
        notes.flush()
        os.fsync(notes.fileno())


def pruned_files(results: Path) -> frozenset[str]:
    """Name the files that were removed, by their paths below the results folder."""
    path = results / PRUNED
    try:
        status = path.stat()
    except OSError:
        return frozenset()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, _written_ns: int, _size: int) -> frozenset[str]:
    try:
        # A process that was killed has left the beginning of a line at most.
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        return frozenset(json.loads(line)["file"] for line in lines if line)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from None


class What(Enum):
    """What of a run is removed."""

    ANSWERS = "answers"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long what is kept.

    Attributes:
        answers_days: For so many days whatever lies next to a record.
        every_days: For so many days every record; after them one a week of the same scenario,
            builds and machine.
    """

    answers_days: int
    every_days: int


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run of a store.

    Attributes:
        record: Path below the results folder.
        like: What makes two runs repetitions of each other: scenario and its definition, machine,
            lines of builds.
        started_at: When it began; with a time zone.
    """

    record: str
    run: str
    like: tuple[str, ...]
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Removal:
    """A file that may go.

    Attributes:
        file: Path below the results folder.
        size: Its bytes.
    """

    file: str
    what: What
    size: int


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What a policy makes of a store.

    Attributes:
        removals: In the order in which they are made: answers first.
        kept: Records that stay.
        protected: By run id, why it stays whole although it is old.
    """

    removals: tuple[Removal, ...]
    kept: int
    protected: Mapping[str, str]

    @property
    def size(self) -> int:
        """Bytes that go."""
        return sum(one.size for one in self.removals)


def may_remove(
    records: Iterable[Path], protected: Collection[str], policy: RetentionPolicy, now: datetime
) -> bool:
    """Whether a policy can remove anything, as far as the names of records tell.

    ``protected`` has the ids of runs that stay, however old; ``now`` has a time zone.
    """
    days = timedelta(days=min(policy.answers_days, policy.every_days))
    for path in records:
        try:
            if read_run_id(path) not in protected and now - parse_start(path.name) > days:
                return True
        except ValueError:  # not one of our names
            return True
    return False


def plan_removals(
    results: Path,
    runs: Sequence[OldRun],
    protected: Mapping[str, str],
    policy: RetentionPolicy,
    now: datetime,
) -> PrunePlan:
    """Say what may go.

    ``runs`` has every run, in any order. ``protected`` says of runs, by their ids, why they have to
    stay. ``now`` has a time zone.
    """
    thinned = {run.record for run in _thinned(runs, protected, policy, now)}
    old = [run for run in runs if _is_older(run, policy.answers_days, now)]
    answers = [
        _name_answers(run.record)
        for run in old
        if run.run not in protected or run.record in thinned
    ]
    removals = [
        Removal(file, what, size)
        for what, files in ((What.ANSWERS, answers), (What.RECORD, sorted(thinned)))
        for file in files
        if (size := _size(results / file)) is not None
    ]
    whole = {run.run: protected[run.run] for run in old if run.run in protected}
    return PrunePlan(tuple(removals), len(runs) - len(thinned), whole)


def remove(results: Path, removals: Sequence[Removal], now: datetime) -> Iterator[Removal]:
    """Remove files one by one, and give each when it is gone; what is left is whole at any time."""
    mirror = mirror_at(results)
    for one in removals:
        path = results / one.file
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            note_pruned(results, one.file, digest, one.what.value, now)
            if mirror is not None:
                mirror.bucket.remove(one.file)
            path.unlink()
        except OSError as error:
            raise RecordError(f"{path}: cannot be removed: {error.strerror or error}") from error
        yield one


def _thinned(
    runs: Sequence[OldRun], protected: Mapping[str, str], policy: RetentionPolicy, now: datetime
) -> Iterator[OldRun]:
    """Yield old runs of a week in which there is another like them, the first of it left out."""
    weeks: set[tuple[object, ...]] = set()
    in_order = sorted(runs, key=lambda run: (run.started_at, run.record))
    stays = [run for run in in_order if run.run in protected]
    weeks.update(_find_week(run) for run in stays)
    for run in in_order:
        if run.run in protected or not _is_older(run, policy.every_days, now):
            continue
        if (week := _find_week(run)) in weeks:
            yield run
        weeks.add(week)


def _find_week(run: OldRun) -> tuple[object, ...]:
    year, week, _ = run.started_at.astimezone(UTC).isocalendar()
    return (*run.like, year, week)


def _is_older(run: OldRun, days: int, now: datetime) -> bool:
    return now - run.started_at > timedelta(days=days)


def _name_answers(record: str) -> str:
    return str(Path(record).with_suffix("")) + BULK_SUFFIX


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
