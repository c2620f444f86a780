"""Bringing an index up to date with the records of its store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.index.queries import Index
from hybridwatch.index.reading import Batch, Headline
from hybridwatch.index.rules import rules_digest
from hybridwatch.index.segments import (
    DamagedError,
    Segment,
    list_segments,
    make_home,
    read_segment,
    remove,
    write_segment,
)
from hybridwatch.index.stamps import Listed, Stamp, list_stamped
from hybridwatch.index.tables import RECORDS, Tables, joined, keeping, tables_of

Say: TypeAlias = Callable[[int, int], None]
"""Called with how many of the new records are read, and how many there are."""

BATCH: Final = 64
"""Records of a segment: as many are lost when a process is killed, some seconds of work."""

_MANY: Final = 16
"""Segments that are read as fast as one; more are put together."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A segment, and which of its records count: there, unchanged, and in no better segment."""

    segment: Segment
    records: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Whether all of it counts."""
        return len(self.records) == len(self.segment.records)

    @property
    def tables(self) -> Tables:
        """What counts."""
        tables = self.segment.tables
        return tables if self.is_whole else keeping(tables, self.records)


def open_index(
    results: Path, headline: Headline, say: Say | None = None, *, rebuild: bool = False
) -> Index:
    """Read and judge the records that are new, and give everything a store holds.

    Several processes may do so at once, and any may be killed. A store that cannot be written is
    opened all the same, only that its new records are read again the next time.

    Args:
        results: The results folder; one that does not exist is an empty store.
        headline: Says a report in one sentence: ``report.sentence.headline``.
        say: Called about progress, once at the start and after each new record.
        rebuild: Whether to read every record again. Not needed after a change of the rules, which
            an index notices by itself.
    """
    home = _home(results, headline)
    known = [] if home is None else _read_all(home, discard=rebuild)
    # Only now: a segment of another process must not speak of records that we do not know yet.
    listed = list_stamped(results)
    held = _claimed(known, listed)
    for each in held:
        if not each.records:
            _forget(each.segment)
    held = [each for each in held if each.records]
    there = {name for each in held for name in each.records}
    missing = {name: found for name, found in listed.items() if name not in there}
    for segment in _added(home, missing, headline, say or _silent):
        held.append(_Held(segment, frozenset(segment.records)))
    tables = joined(each.tables for each in held)
    kept = all(each.segment.path for each in held)
    if home is not None and kept and _is_untidy(held):
        _put_together(home, held, tables)
    return Index(results, listed, tables, kept=kept)


def _home(results: Path, headline: Headline) -> Path | None:
    if not results.is_dir():
        return None
    try:
        return make_home(results, rules_digest(headline))
    except OSError:
        return None


def _read_all(home: Path, *, discard: bool) -> list[Segment]:
    """Read the segments, those that others make meanwhile included; what counts most first."""
    if discard:
        for path in list_segments(home):
            remove(path)
    tried: dict[Path, Segment | None] = {}
    while fresh := [path for path in list_segments(home) if path not in tried]:
        for path in fresh:
            tried[path] = _read_or_remove(path)
    found = [segment for segment in tried.values() if segment]
    return sorted(found, key=lambda segment: str(segment.path), reverse=True)


def _read_or_remove(path: Path) -> Segment | None:
    try:
        return read_segment(path)
    except FileNotFoundError:
        return None  # put together with others, which are listed next
    except DamagedError:
        remove(path)
        return None


def _claimed(segments: Sequence[Segment], listed: Mapping[str, Listed]) -> list[_Held]:
    taken: set[str] = set()
    held: list[_Held] = []
    for segment in segments:
        mine = {
            name
            for name, stamp in _stamps_in(segment)
            if name not in taken and name in listed and listed[name].stamp == stamp
        }
        taken |= mine
        held.append(_Held(segment, frozenset(mine)))
    return held


def _stamps_in(segment: Segment) -> Iterator[tuple[str, Stamp]]:
    table = segment.tables[RECORDS]
    columns = [table[name].to_pylist() for name in ("record", *Stamp.__slots__)]
    for name, *stamp in zip(*columns, strict=True):
        yield name, Stamp(*stamp)


def _added(
    home: Path | None, missing: Mapping[str, Listed], headline: Headline, say: Say
) -> Iterator[Segment]:
    names = list(missing)
    say(0, len(names))
    for start in range(0, len(names), BATCH):
        batch = Batch()
        for done, name in enumerate(names[start : start + BATCH], start=start + 1):
            batch.add(name, missing[name], headline)
            say(done, len(names))
        yield _kept(home, tables_of(batch.rows))


def _kept(home: Path | None, tables: Tables) -> Segment:
    if home is not None:
        try:
            return write_segment(home, tables)
        except OSError:
            pass  # a full or read-only disk: what was read can be shown all the same
    return Segment(None, tables)


def _is_untidy(held: Sequence[_Held]) -> bool:
    return len(held) > _MANY or not all(each.is_whole for each in held)


def _put_together(home: Path, held: Sequence[_Held], tables: Tables) -> None:
    """Make one segment of all, and only then remove the others."""
    generation = 1 + max(each.segment.generation for each in held)
    try:
        write_segment(home, tables, generation)
    except OSError:
        return  # as it was is whole too
    for each in held:
        _forget(each.segment)


def _forget(segment: Segment) -> None:
    if segment.path is not None:
        remove(segment.path)


def _silent(_done: int, _total: int) -> None:
    pass
