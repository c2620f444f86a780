"""Records that are new, changed or gone, one transaction at a time."""

from collections.abc import Collection, Mapping, Sequence

from hybridwatch.database.connection import Database
from hybridwatch.database.reading import RecordRows
from hybridwatch.database.stamps import Stamp
from hybridwatch.database.writing import (
    KnownRecords,
    add,
    find_rules,
    forget,
    known_records,
    made_anew,
    make_tables,
)
from hybridwatch.errors import DatabaseError


def known_by(database: Database, rules: str) -> Mapping[str, KnownRecords]:
    """Give the records that are known by these rules; none where there is no database yet."""
    if database.file is not None and not database.file.exists():
        return {}
    with database.reading() as connection:
        return known_records(connection) if find_rules(connection) == rules else {}


def forget_vanished(
    database: Database,
    rules: str,
    known: Mapping[str, KnownRecords],
    listed: Collection[str],
    *,
    rebuild: bool = False,
) -> None:
    """Take out what is listed no more; of what other rules made, or for a rebuild, everything."""
    gone = [one.number for name, one in known.items() if name not in listed]
    if rebuild or gone or not known:
        with database.writing() as connection:
            if rebuild or find_rules(connection) != rules:
                make_tables(connection, rules)
            forget(connection, gone)


def put_in_place(database: Database, rules: str, batch: Sequence[RecordRows]) -> None:
    """Put records in place of what was known of them, unless another process was faster."""
    with database.writing() as connection:
        if find_rules(connection) != rules:
            raise DatabaseError(made_anew(database))
        known = known_records(connection, [rows.record["path"] for rows in batch])
        new = [rows for rows in batch if not _is_there(rows, known)]
        old = [known[path].number for rows in new if (path := rows.record["path"]) in known]
        forget(connection, old)
        add(connection, new)


def _is_there(rows: RecordRows, known: Mapping[str, KnownRecords]) -> bool:
    one = known.get(rows.record["path"])
    stamp = Stamp(*(rows.record[name] for name in Stamp.__slots__))
    return one is not None and one.judged >= rows.record["judged"] and one.stamp == stamp
