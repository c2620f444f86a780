"""Puts records into the derived tables, read and judged on all processors, and takes them out.

Workers are plain processes that are handed records and give back rows, by pickles over pipes:
``multiprocessing`` would run the caller's main script again in each, which may be a dashboard's.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, starmap
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, Table, delete, insert, inspect, select, tuple_

from hybridwatch.database.connection import Database
from hybridwatch.database.reading import Listed, RecordRows, Row, Stamp, list_stamped, read_rows
from hybridwatch.database.schema import (
    DERIVED,
    LEVEL,
    METADATA,
    OF_RECORD,
    PAIR,
    QUESTION,
    RECORD,
    REPORT,
    RULES,
    RUN,
    SERIES,
    SIDE,
    VALUE,
    VERDICT,
)
from hybridwatch.errors import DatabaseError
from hybridwatch.system.guard import end_with_parent
from hybridwatch.system.python_command import python_command

NamedRecord: TypeAlias = tuple[str, Listed]
"""A record's name and where it lies."""
_STANDING: Final = select(RULES.c.digest)
_OF_SERIES: Final = tuple(SERIES.c.keys()[1:-2])
"""What a run gives to the name of each of its series; metric and statistic follow."""
_AT_A_TIME: Final = 500
"""Parameters of one statement; databases have a limit."""


def find_rules(connection: Connection) -> str:
    """Name the rules by which what is derived was made; empty where nothing is."""
    if not inspect(connection).has_table(RULES.name):
        return ""
    return standing_rules(connection)


def standing_rules(connection: Connection) -> str:
    """Give the same of tables that are known to be there, which costs a third."""
    return connection.scalar(_STANDING) or ""


def explain_rebuild(database: Database) -> str:
    """Say what is wrong where the rules are not those that were found before."""
    return f"{database.name}: another version of hybridwatch has made its tables again"


def make_tables(connection: Connection, rules: str) -> None:
    """Make the derived tables again, empty."""
    METADATA.drop_all(connection, tables=DERIVED)
    METADATA.create_all(connection, tables=DERIVED)
    connection.execute(insert(RULES).values(digest=rules))


class KnownRecords(NamedTuple):
    """A record that the database has; if not ``judged``, only what it is about."""

    number: int
    stamp: Stamp
    judged: bool


def known_records(
    connection: Connection, paths: Sequence[str] | None = None
) -> Mapping[str, KnownRecords]:
    """Give the records that are known by their paths, all of them or some."""
    columns = [RECORD.c[name] for name in Stamp.__slots__]
    wanted = select(RECORD.c.path, RECORD.c.id, RECORD.c.judged, *columns)
    if paths is not None:
        wanted = wanted.where(RECORD.c.path.in_(paths))
    return {
        path: KnownRecords(number, Stamp(*stamp), judged)
        for path, number, judged, *stamp in connection.execute(wanted)
    }


def forget(connection: Connection, numbers: Sequence[int]) -> None:
    """Take records out, and all that they gave."""
    for some in _in_parts(numbers):
        levels = (LEVEL.c.series, LEVEL.c.record)
        lying = connection.execute(select(*levels).where(LEVEL.c.record.in_(some)).distinct())
        for places in _in_parts([tuple(place) for place in lying]):
            place = tuple_(VALUE.c.series, VALUE.c.record)
            connection.execute(delete(VALUE).where(place.in_(places)))
        for table in OF_RECORD:
            connection.execute(delete(table).where(table.c.record.in_(some)))
        connection.execute(delete(RECORD).where(RECORD.c.id.in_(some)))


def add(connection: Connection, found: Sequence[RecordRows]) -> None:
    """Add records that are not there."""
    numbers = _numbers(connection, [rows.record for rows in found])
    runs = [(numbers[rows.record["path"]], rows, rows.run) for rows in found if rows.run]
    pairs = _ids(connection, PAIR, [rows.lines for _, rows, _ in runs])
    series = _ids(connection, SERIES, _named(runs, _series))
    questions = _ids(
        connection, QUESTION, _named(runs, lambda rows, run: _questions(rows, run, pairs))
    )
    _insert(connection, RUN, [r | {"record": n, "pair": pairs[w.lines]} for n, w, r in runs])
    _insert(connection, SIDE, [s | {"record": n} for n, w, _ in runs for s in w.sides])
    _insert(connection, LEVEL, [row for one in runs for row in _levels(*one, series, pairs)])
    _insert(connection, VALUE, sorted(_value_rows(runs, series), key=lambda row: row["series"]))
    _insert(connection, VERDICT, [row for one in runs for row in _verdicts(*one, questions, pairs)])
    _insert(connection, REPORT, [{"record": n, "json": w.report} for n, w, _ in runs if w.report])


def _numbers(connection: Connection, records: Sequence[Row]) -> Mapping[str, int]:
    if not records:
        return {}
    made = connection.execute(insert(RECORD).returning(RECORD.c.path, RECORD.c.id), records)
    return {row.path: row.id for row in made}


def _named(
    runs: Iterable[tuple[int, RecordRows, Row]],
    names: Callable[[RecordRows, Row], Iterable[tuple[Any, ...]]],
) -> list[tuple[Any, ...]]:
    return [name for _, rows, run in runs for name in names(rows, run)]


def _ids(
    connection: Connection, table: Table, wanted: Iterable[tuple[Any, ...]]
) -> Mapping[tuple[Any, ...], int]:
    """Give the numbers of names, those that are new included."""
    names = [column for column in table.c if column.name != "id"]
    found: dict[tuple[Any, ...], int] = {}
    missing = list(dict.fromkeys(wanted))
    for some in _in_parts(missing, _AT_A_TIME // len(names)):
        for number, *name in connection.execute(
            select(table.c.id, *names).where(tuple_(*names).in_(some))
        ):
            found[tuple(name)] = number
    new = [
        dict(zip(table.c.keys()[1:], name, strict=True)) for name in missing if name not in found
    ]
    if new:
        for number, *name in connection.execute(insert(table).returning(table.c.id, *names), new):
            found[tuple(name)] = number
    return found


def _series(rows: RecordRows, run: Row) -> Iterable[tuple[Any, ...]]:
    place = tuple(run[name] for name in _OF_SERIES)
    for one in rows.measured:
        yield (*place, one.metric, one.statistic)


def _questions(
    rows: RecordRows, run: Row, pairs: Mapping[tuple[Any, ...], int]
) -> Iterable[tuple[Any, ...]]:
    place = run["scenario"], run["digest"], pairs[rows.lines], run["testbed"]
    for row in rows.verdicts:
        yield (*place, row["metric"], row["statistic"])


def _levels(
    number: int,
    rows: RecordRows,
    run: Row,
    series: Mapping[tuple[Any, ...], int],
    pairs: Mapping[tuple[Any, ...], int],
) -> Iterable[Row]:
    for one, name in zip(rows.measured, _series(rows, run), strict=True):
        yield {
            "series": series[name],
            "pair": pairs[rows.lines] if one.side == run["sides"] - 1 else 0,
            "started_at": run["started_at"],
            "record": number,
            "side": one.side,
            "median": one.median,
            "n": len(one.values),
        }


def _value_rows(
    runs: Iterable[tuple[int, RecordRows, Row]], series: Mapping[tuple[Any, ...], int]
) -> Iterable[Row]:
    for number, rows, run in runs:
        for one, name in zip(rows.measured, _series(rows, run), strict=True):
            place = {"series": series[name], "record": number, "side": one.side}
            for nth, (trial, value) in enumerate(one.values):
                yield place | {"nth": nth, "trial": trial, "value": value}


def _verdicts(
    number: int,
    rows: RecordRows,
    run: Row,
    questions: Mapping[tuple[Any, ...], int],
    pairs: Mapping[tuple[Any, ...], int],
) -> Iterable[Row]:
    named = {"record": number, "started_at": run["started_at"]}
    for row, question in zip(rows.verdicts, _questions(rows, run, pairs), strict=True):
        plain = {name: value for name, value in row.items() if name in VERDICT.c}
        yield plain | named | {"question": questions[question]}


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _in_parts(items: Sequence[Any], length: int = _AT_A_TIME) -> Iterable[Sequence[Any]]:
    for start in range(0, len(items), length):
        yield items[start : start + length]


def find_new(
    database: Database, results: Path, rules: str, *, judged: bool, rebuild: bool = False
) -> tuple[Mapping[str, Listed], Sequence[NamedRecord]]:
    """List a store, and what of it the database lacks; what is listed no more is taken out.

    ``judged`` is whether a record of which only the head is known counts as lacking. What other
    rules made is taken out, for a rebuild everything.
    """
    # Known first, listed then: what another process adds meanwhile must not look like vanished.
    known = {} if rebuild else _known_by(database, rules)
    listed = list_stamped(results)
    lacking = [
        (name, one)
        for name, one in listed.items()
        if name not in known or known[name].judged < judged or known[name].stamp != one.stamp
    ]
    gone = [one.number for name, one in known.items() if name not in listed]
    if rebuild or gone or not known:
        with database.writing() as connection:
            if rebuild or find_rules(connection) != rules:
                make_tables(connection, rules)
            forget(connection, gone)
    return listed, lacking


def _known_by(database: Database, rules: str) -> Mapping[str, KnownRecords]:
    if database.file is not None and not database.file.exists():
        return {}
    with database.reading() as connection:
        return known_records(connection) if find_rules(connection) == rules else {}


def put_in_place(database: Database, rules: str, batch: Sequence[RecordRows]) -> None:
    """Put records in place of what was known of them, unless another process was faster."""
    with database.writing() as connection:
        if find_rules(connection) != rules:
            raise DatabaseError(explain_rebuild(database))
        known = known_records(connection, [rows.record["path"] for rows in batch])
        new = [rows for rows in batch if not _is_there(rows, known)]
        old = [known[path].number for rows in new if (path := rows.record["path"]) in known]
        forget(connection, old)
        add(connection, new)


def _is_there(rows: RecordRows, known: Mapping[str, KnownRecords]) -> bool:
    one = known.get(rows.record["path"])
    stamp = Stamp(*(rows.record[name] for name in Stamp.__slots__))
    return one is not None and one.judged >= rows.record["judged"] and one.stamp == stamp


_WORTH_IT: Final = 50
"""New records from which on other processes, which take seconds to start, are worth it."""
_HANDED_AT_ONCE: Final = 8
"""Records that a process is handed at once."""


def judged_by_all(
    records: Sequence[NamedRecord], say: Callable[[int, int], None]
) -> Iterator[RecordRows]:
    """Read and judge records in their order; ``say`` is called with how many are read so far."""
    processes = os.cpu_count() or 1
    if processes == 1 or len(records) < _WORTH_IT:
        yield from _counting(starmap(read_rows, records), len(records), say)
        return
    parts = [records[at : at + _HANDED_AT_ONCE] for at in range(0, len(records), _HANDED_AT_ONCE)]
    with ExitStack() as ending, ThreadPoolExecutor(processes) as threads:
        workers: SimpleQueue[_Worker] = SimpleQueue()
        for _ in range(processes):
            worker = _Worker()
            ending.callback(worker.end)
            workers.put(worker)

        def read(part: Sequence[NamedRecord]) -> list[RecordRows]:
            worker = workers.get()
            try:
                return worker.read(part)
            finally:
                workers.put(worker)

        found = threads.map(read, parts)
        yield from _counting(chain.from_iterable(found), len(records), say)


class _Worker:
    """A process that reads and judges what it is handed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            python_command("-m", __name__, str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def read(self, part: Sequence[NamedRecord]) -> list[RecordRows]:
        """Give the rows of some records; they are read here if the process is gone."""
        pipes = self._process
        assert pipes.stdin is not None  # noqa: S101 (as it was started)
        assert pipes.stdout is not None  # noqa: S101
        try:
            pickle.dump(list(part), pipes.stdin)
            pipes.stdin.flush()
            rows: list[RecordRows] = pickle.load(pipes.stdout)  # noqa: S301 (our own process)
        except (OSError, EOFError, pickle.UnpicklingError):
            return list(starmap(read_rows, part))
        return rows

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def _counting(
    found: Iterable[RecordRows], total: int, say: Callable[[int, int], None]
) -> Iterator[RecordRows]:
    for done, rows in enumerate(found, start=1):
        say(done, total)
        yield rows


def _work(parent: int) -> None:
    """Answer the parent until it ends, however it does; interrupts are its business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    # What is printed while records are read must not get among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            part: list[NamedRecord] = pickle.load(sys.stdin.buffer)  # noqa: S301 (our own process)
        except EOFError:
            return
        pickle.dump(list(starmap(read_rows, part)), answers)
        answers.flush()


if __name__ == "__main__":
    _work(int(sys.argv[1]))
