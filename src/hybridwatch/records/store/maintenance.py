"""Maintenance of a store: deletes what is old, and verifies the digests of the rest.

Bulk goes first: it is most of the bytes, and without it only the verdict on accuracy is lost. Then
old records are thinned to one a week. Records of schema version 1 have no digest; they get one in
``SHA256SUMS``, which ``sha256sum -c SHA256SUMS``, in the results folder, checks too.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode_record
from hybridwatch.records.fields import MOST_RECORD_BYTES
from hybridwatch.records.file_parts import BULK_SUFFIX, RECORD_SUFFIX, name_bulk, parse_start
from hybridwatch.records.store.files import append_line
from hybridwatch.records.store.layout import (
    PRUNED,
    RECORDS,
    list_records,
    pruned_files,
    read_run_id,
)
from hybridwatch.records.store.mirror import mirror_at
from hybridwatch.records.store.reader import is_pruned, read_bulk, read_file
from hybridwatch.records.store.verdicts import list_verdicts, read_verdict
from hybridwatch.system.files import HALVES, claimed_folder, named_errors, put


def note_pruned(results: Path, file: str, digest: str, what: str, now: datetime) -> None:
    """Note a file, by its path below the results folder, that is about to be removed."""
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    line = json.dumps({"file": file, "sha256": digest, "what": what, "at": at})
    append_line(results / PRUNED, line)


class What(Enum):
    """What of a run is removed."""

    ANSWERS = "answers"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """For how many days the files next to a record are kept, and every record.

    After these one record a week is kept of the same scenario, builds and machine.
    """

    answers_days: int
    every_days: int


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run of a store; those ``like`` each other, by definition, machine and lines, repeat it."""

    record: str
    run: str
    like: tuple[str, ...]
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Removal:
    """A file that may go, by its path below the results folder."""

    file: str
    what: What
    size: int


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What a policy makes of a store: removals in order, answers first.

    ``protected`` says by run id why it stays whole although it is old.
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
    """Whether a policy can remove anything, as far as the names of records say."""
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
    """Say what may go of all runs; ``protected`` says by id why some have to stay."""
    thinned = {run.record for run in _thinned(runs, protected, policy, now)}
    old = [run for run in runs if _is_older(run, policy.answers_days, now)]
    answers = [
        str(name_bulk(Path(run.record)))
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
        with named_errors(path, "cannot be removed"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            note_pruned(results, one.file, digest, one.what.value, now)
            if mirror is not None:
                mirror.bucket.remove(one.file)
            path.unlink()
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


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


SUMS: Final = "SHA256SUMS"

_MOST_SUMS_BYTES: Final = 2**26
_SUMS_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")


@dataclass(slots=True)
class StoreCheck:
    """What was found, by path below the results folder: why a file is not as it was written.

    ``without_digest`` has digests as they are now; ``leftovers`` are of a process that was killed.
    """

    records: int = 0
    verdicts: int = 0
    wrong: dict[str, str] = field(default_factory=dict)
    without_digest: dict[str, str] = field(default_factory=dict)
    leftovers: list[str] = field(default_factory=list)


def check_store(
    results: Path, say: Callable[[int, int], None], *, repair: bool = False
) -> StoreCheck:
    """Read everything, answers included, and hold it against its digests.

    ``repair`` removes leftovers. ``say`` is called with how many files were read, and of how many.
    """
    records, verdicts = list_records(results), list_verdicts(results)
    found = StoreCheck(len(records), len(verdicts))
    sums = _read_sums(results)
    names = {path: path.relative_to(results).as_posix() for path in (*records, *verdicts)}
    for done, path in enumerate(records, start=1):
        _note_damage(found, names[path], partial(_check_record, found, sums, path, names[path]))
        say(done, len(names))
    for done, path in enumerate(verdicts, start=1 + len(records)):
        _note_damage(found, names[path], partial(_check_verdict, path))
        say(done, len(names))
    for name in sums.keys() - set(names.values()) - pruned_files(results):
        found.wrong[name] = f"named in {SUMS} and not there"
    for folder in sorted((results / RECORDS).glob("*/")):
        with claimed_folder(folder):  # else it may be what another process writes right now
            found.leftovers += list(_find_leftovers(results, folder, remove=repair))
    return found


def _find_leftovers(results: Path, folder: Path, *, remove: bool) -> Iterator[str]:
    mirror = mirror_at(results)
    stems = {path.stem for path in folder.glob(f"*{RECORD_SUFFIX}")}
    halves = sorted(folder.glob(HALVES))
    for path in [*halves, *sorted(folder.glob(f"[!.]*{BULK_SUFFIX}"))]:
        if path.name.removesuffix(BULK_SUFFIX) in stems:
            continue
        name = path.relative_to(results).as_posix()
        if remove:
            with named_errors(path, "cannot be removed"):
                if mirror is not None and path not in halves:
                    mirror.bucket.remove(name)
                path.unlink(missing_ok=True)
        yield name


def add_digests(results: Path, digests: Mapping[str, str]) -> None:
    """Write into ``SHA256SUMS`` the digests of records that have none inside."""
    lines = sorted(
        f"{digest}  {name}\n" for name, digest in {**_read_sums(results), **digests}.items()
    )
    path = results / SUMS
    with named_errors(path):
        put(path, "".join(lines).encode())


def _note_damage(found: StoreCheck, name: str, look: Callable[[], None]) -> None:
    try:
        look()
    except OSError as error:
        found.wrong[name] = f"cannot be read: {error.strerror or error}"
    except RecordError as error:
        found.wrong[name] = str(error)


def _check_record(found: StoreCheck, sums: Mapping[str, str], path: Path, name: str) -> None:
    raw = read_file(path, MOST_RECORD_BYTES)
    decoded = decode_record(raw)
    if decoded.bulk is None or not is_pruned(path, decoded.bulk.file):
        decoded.whole(lambda beside: read_bulk(path, beside))
    digest = hashlib.sha256(raw).hexdigest()
    if name in sums and sums[name] != digest:
        raise RecordError(f"sha256: expected {sums[name]} as in {SUMS}, found {digest}")
    if name not in sums and decoded.run.sha256 is None:
        found.without_digest[name] = digest


def _check_verdict(path: Path) -> None:
    _, as_written = read_verdict(path)
    if not as_written:
        raise RecordError("sha256: the file is not as it was written")


def _read_sums(results: Path) -> dict[str, str]:
    path = results / SUMS
    try:
        lines = read_file(path, _MOST_SUMS_BYTES).decode().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        match = _SUMS_LINE.fullmatch(line)
        if match is None or not match[2].endswith(RECORD_SUFFIX):
            raise RecordError(
                f"{path}: line {number}: expected a digest, two spaces and the path of a record, "
                f"found {line[:80]!r}"
            )
        found[match[2]] = match[1]
    return found
