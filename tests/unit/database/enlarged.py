"""A store that holds its records several times, to measure what grows with a store.

::

    python -m tests.unit.database.enlarged FOLDER --times 10

Every record is linked under other testbed folders, and its rows are repeated weeks later, since to
judge so many would take an hour. FOLDER must be one by ``tests.unit.database.synthetic``, brought
up to date by ``hybridwatch index``.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from sqlalchemy import ColumnElement, Connection, Table, func, insert, literal, select

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.schema import LEVEL, RECORD, REPORT, RUN, SIDE, VALUE, VERDICT
from hybridwatch.records.store import list_records, read_run
from tests.unit.database.synthetic import REVISION

_WEEKS = 12
"""Between a night and its repetition."""


def enlarge(results: Path, times: int) -> int:
    """Repeat everything that a made-up store holds; gives the number of records then."""
    records = list_records(results)
    if read_run(records[-1], bulk=False).harness.revision != REVISION:
        sys.exit(f"{results}: expected a store by tests.unit.database.synthetic")
    with Database(find_database_url(results)).writing() as connection:
        last = connection.scalar(select(func.max(RECORD.c.id))) or 0
        for number in range(1, times):
            _link(records, number)
            for table in (RECORD, RUN, SIDE, LEVEL, VALUE, VERDICT, REPORT):
                _repeat(connection, table, last, number)
        if connection.dialect.name == "postgresql":
            newest = select(func.max(RECORD.c.id)).scalar_subquery()
            connection.execute(select(func.setval("record_id_seq", newest)))
    return len(list_records(results))


def _link(records: list[Path], number: int) -> None:
    for path in records:
        folder = path.parent.with_name(f"{path.parent.name}-{number}")
        folder.mkdir(exist_ok=True)
        for file in path.parent.glob(f"{path.stem}*"):
            os.link(file, folder / file.name)


def _repeat(connection: Connection, table: Table, last: int, number: int) -> None:
    own = table.c.id if table is RECORD else table.c.record
    columns = [_shifted(column, last, number) for column in table.c]
    connection.execute(
        insert(table).from_select(table.c.keys(), select(*columns).where(own <= last))
    )


def _shifted(column: ColumnElement[Any], last: int, number: int) -> ColumnElement[Any]:
    if column.key in {"id", "record"}:
        return column + number * last
    if column.key == "started_at":
        microseconds = number * timedelta(weeks=_WEEKS) // timedelta(microseconds=1)
        return column.op("+")(literal(microseconds))
    if column.key == "run":
        return column + f"-{number}"
    if column.key == "path":
        place = func.replace(column, "synthetic-2c-000000/", f"synthetic-2c-000000-{number}/")
        return place.label("path")
    return column


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--times", type=click.IntRange(2), default=10, show_default=True)
def command(folder: Path, times: int) -> None:
    """Repeat what FOLDER holds."""
    click.echo(f"{enlarge(folder, times)} records")


if __name__ == "__main__":
    command()
