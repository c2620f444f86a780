"""Bringing what is derived in line with the records of a store."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from hybridwatch.database.connection import Database
from hybridwatch.database.judging import judged_by_all
from hybridwatch.database.opening import with_database
from hybridwatch.database.queries import Index
from hybridwatch.database.reading import RecordRows
from hybridwatch.database.rules import rules_digest
from hybridwatch.database.stamps import list_stamped
from hybridwatch.database.sync import forget_vanished, known_by, put_in_place

Say: TypeAlias = Callable[[int, int], None]
"""Called with how many of the new records are read, and how many there are."""

BATCH: Final = 64
"""Records of a transaction: as many are lost when a process is killed, some seconds of work."""


def open_index(results: Path, say: Say | None = None, *, rebuild: bool = False) -> Index:
    """Read and judge the records that are new, and give everything a store holds.

    Several processes may do so at once, and any may be killed. A results folder in which no
    database can be written is opened all the same, only that its new records are read again the
    next time. A folder that does not exist is an empty store.

    ``say`` is called at the start and after each new record. ``rebuild`` reads every record again;
    that is not needed after a change of the rules, which a database notices by itself.

    Raises:
        DatabaseError: The server that ``HYBRIDWATCH_DATABASE`` names cannot be used.
        UrlError: It names nothing that can be.
    """
    return with_database(
        results,
        # What a copy holds is as new as it was: there is nothing to make again in it.
        lambda database: _brought_up(
            database, results, say or _silent, rebuild=rebuild and database.kept
        ),
    )


def _brought_up(database: Database, results: Path, say: Say, *, rebuild: bool) -> Index:
    rules = rules_digest()
    # Known first, listed then: what another process adds meanwhile must not look like vanished.
    known = {} if rebuild else known_by(database, rules)
    listed = list_stamped(results)
    there = {name: one.stamp for name, one in known.items() if one.judged}
    missing = [(name, one) for name, one in listed.items() if there.get(name) != one.stamp]
    forget_vanished(database, rules, known, listed, rebuild=rebuild)
    say(0, len(missing))
    for batch in _batches(judged_by_all(missing, say)):
        put_in_place(database, rules, batch)
    return Index(results, database, listed, rules)


def _batches(rows: Iterator[RecordRows]) -> Iterator[Sequence[RecordRows]]:
    batch: list[RecordRows] = []
    for one in rows:
        batch.append(one)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _silent(_done: int, _total: int) -> None:
    pass
