"""Statements of a person: they read, and change nothing."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection

from hybridwatch.database.connection import Database
from hybridwatch.errors import DatabaseError

_READ_ONLY: Final = {
    "sqlite": "PRAGMA query_only=ON",
    "postgresql": "SET TRANSACTION READ ONLY",
}


def ask(database: Database, statement: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Answer one SQL statement.

    A second statement behind it is refused. Gives the names of the columns, and the rows.

    Raises:
        DatabaseError: It cannot be answered, gives no rows, or would change something.
    """
    with database.reading() as connection:
        connection.exec_driver_sql(_READ_ONLY[connection.dialect.name])
        return _answer(connection, statement)


def _answer(
    connection: Connection, statement: str
) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    driver = connection.connection.dbapi_connection
    if driver is None:
        raise DatabaseError("the connection to the database was lost")
    driver_module = connection.dialect.loaded_dbapi
    cursor = driver.cursor()
    # PostgreSQL takes several statements at once, unless it is to prepare them.
    options: Any = {"prepare": True} if connection.dialect.name == "postgresql" else {}
    try:
        cursor.execute(statement, **options)
        if cursor.description is None:
            raise DatabaseError("expected a statement that gives rows: SELECT …")
        return [column[0] for column in cursor.description], cursor.fetchall()
    except (driver_module.Error, driver_module.Warning) as error:
        raise DatabaseError(f"the statement: {' '.join(str(error).split())}") from error
    finally:
        cursor.close()
