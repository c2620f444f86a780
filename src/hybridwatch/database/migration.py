"""The tables of what is kept, step by step from one version to the next (Alembic)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Table, inspect, text

from hybridwatch.database.connection import Database
from hybridwatch.errors import TriageError

VERSIONS: Final = "hybridwatch_schema"
"""Table in which Alembic keeps the last migration that was made."""
NEWEST: Final = "0004"
"""The last migration there is; they are numbered."""


def find_version(connection: Connection) -> str:
    """Name the last migration that was made; empty where none was."""
    if not inspect(connection).has_table(VERSIONS):
        return ""
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSIONS}"))  # noqa: S608
    return found or ""


def check_known(connection: Connection, name: str) -> None:
    """Refuse tables that a newer hybridwatch has made, with a ``TriageError``."""
    if (found := find_version(connection)) > NEWEST:
        raise TriageError(
            f"{name}: schema version: found {found}, but this hybridwatch reads up to {NEWEST}: "
            "upgrade hybridwatch"
        )


def migrate(connection: Connection) -> None:
    """Bring the tables to the newest version; the caller has the writer's turn."""
    if find_version(connection) == NEWEST:
        return
    # A process that only reads does not need them.
    from alembic import command
    from alembic.config import Config

    config = Config()
    scripts = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, NEWEST)


@contextmanager
def writing_kept(database: Database) -> Iterator[Connection]:
    """Give a writer's turn; the tables are made, or brought to the newest version, before."""
    with database.writing() as connection:
        check_known(connection, database.name)
        migrate(connection)
        yield connection


@contextmanager
def reading_kept(database: Database, table: Table) -> Iterator[Connection | None]:
    """Read, if ``table`` is there; makes no database where there is none."""
    if database.file is not None and not database.file.exists():
        yield None
        return
    with database.reading() as connection:
        check_known(connection, database.name)
        yield connection if inspect(connection).has_table(table.name) else None
