"""Writes rows into the derived tables and deletes them; the caller holds the writer's lock."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, delete, insert, inspect, select, tuple_

from hybridwatch.database.connection import Database
from hybridwatch.database.reading import RecordRows, Row
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
from hybridwatch.database.stamps import Stamp

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


def made_anew(database: Database) -> str:
    """Say what is wrong where the rules are not those that were found before."""
    return f"{database.name}: another version of hybridwatch has made its tables again"


def make_tables(connection: Connection, rules: str) -> None:
    """Make the derived tables again, empty."""
    METADATA.drop_all(connection, tables=DERIVED)
    METADATA.create_all(connection, tables=DERIVED)
    connection.execute(insert(RULES).values(digest=rules))


class KnownRecords(NamedTuple):
    """A record that the database has.

    Attributes:
        stamp: From when it was read.
        judged: Whether more is known of it than what it is about.
    """

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
    for some in _parts(numbers):
        levels = (LEVEL.c.series, LEVEL.c.record)
        lying = connection.execute(select(*levels).where(LEVEL.c.record.in_(some)).distinct())
        for places in _parts([tuple(place) for place in lying]):
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
    _insert(connection, VALUE, sorted(_values(runs, series), key=lambda row: row["series"]))
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
    for some in _parts(missing, _AT_A_TIME // len(names)):
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
    for row in rows.verdicts:
        pair = pairs[rows.lines]
        yield (
            run["scenario"],
            run["digest"],
            pair,
            run["testbed"],
            row["metric"],
            row["statistic"],
        )


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


def _values(
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


def _parts(items: Sequence[Any], length: int = _AT_A_TIME) -> Iterable[Sequence[Any]]:
    for start in range(0, len(items), length):
        yield items[start : start + length]
