"""One database, a SQLite file in the results folder or a team's PostgreSQL server."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    Table,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError

from hybridwatch.errors import DatabaseError, HybridwatchError, TriageError
from hybridwatch.system.files import claimed

DATABASE_VARIABLE: Final = "HYBRIDWATCH_DATABASE"
"""Environment variable that names another database, as a URL."""
DATABASE_FILE: Final = "hybridwatch.sqlite"

_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
"""What people write, and the driver that is meant."""


class UrlError(HybridwatchError):
    """A text is no URL of a database that can be used; it is not repeated, for its password."""


def find_database_url(results: Path) -> URL:
    """Find the database of a results folder."""
    given = os.environ.get(DATABASE_VARIABLE, "")
    if not given:
        return file_url(results / DATABASE_FILE)
    return parsed(given, DATABASE_VARIABLE)


def file_url(path: Path) -> URL:
    """Name a SQLite file."""
    return URL.create("sqlite+pysqlite", database=str(path.absolute()))


def parsed(given: str, where: str) -> URL:
    """Read a URL as people write it; the ``UrlError`` says ``where`` it was given."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise UrlError(_expected_url(where, "something that is no such URL")) from None
    scheme, _, driver = url.drivername.partition("+")
    if scheme not in _DRIVERS or driver not in {"", _DRIVERS[scheme].partition("+")[2]}:
        raise UrlError(_expected_url(where, f"one of {url.drivername!r}"))
    if scheme == "sqlite":
        _check_file(url, where)
    return url.set(drivername=_DRIVERS[scheme])


def shown(url: URL) -> str:
    """Name a database for people: no password, and no options, which may hold one too."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(query={}).render_as_string(hide_password=True)


def find_secrets(url: URL) -> tuple[str, ...]:
    """List the passwords in a URL, the longest first."""
    found = {url.password or ""}
    for option, value in url.query.items():
        if "pass" in option:
            found |= {value} if isinstance(value, str) else set(value)
    return tuple(sorted(found - {""}, key=len, reverse=True))


def _check_file(url: URL, where: str) -> None:
    database = url.database or ":memory:"
    if database == ":memory:" or database.startswith("file:"):
        raise UrlError(_expected_url(where, "a SQLite database that is no plain file"))
    if url.query or url.host:
        raise UrlError(_expected_url(where, "a host or options for a SQLite file"))


def _expected_url(where: str, found: str) -> str:
    return (
        f"{where}: expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, "
        f"found {found}"
    )


_PATIENCE_S: Final = 30
"""How long to wait for other writers, or for a server to answer."""
_LONGEST_STATEMENT_S: Final = 120
"""A statement that a server has not answered by then is given up."""
_INSTRUCTIONS: Final = 100_000
"""Of SQLite, some milliseconds, after which it looks at the clock."""
_CONNECTIONS: Final = 10
"""As many threads of one process talk to a server at a time; others wait for one of them."""
_PRAGMAS: Final = (
    # With a write-ahead log readers see the last state during a write. Where it cannot be
    # had (a read-only file, another process asking for it right now), everything works without.
    "PRAGMA journal_mode=WAL",
    "PRAGMA cache_size=-65536",  # KiB: the inner pages of a large table stay in memory
    "PRAGMA temp_store=MEMORY",
)
_TURN: Final = {
    "sqlite": "BEGIN IMMEDIATE",
    # Any number that all hybridwatch processes agree on; until the transaction ends.
    "postgresql": "SELECT pg_advisory_xact_lock(4187342430)",
}
"""How a writer waits for its turn."""


class Database:
    """A database. Threads may share it; processes each open their own.

    Attributes:
        name: What to call it, without a password.
        file: Of SQLite; ``None`` for a server.
        kept: Whether what is written stays after this process.
    """

    def __init__(self, url: URL, error: type[HybridwatchError] = DatabaseError) -> None:
        self.name = shown(url)
        self.file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
        self.kept = True
        self._error = error
        self._secrets = find_secrets(url)
        self._engine = _sqlite(url) if self.file else self._server(url)
        weakref.finalize(self, self._engine.dispose)

    @classmethod
    def temporary(cls, like: Path | None = None) -> "Database":
        """Make one that goes with this object; a copy of the SQLite file ``like`` if readable."""
        folder = tempfile.mkdtemp(prefix="hybridwatch-")
        path = Path(folder) / DATABASE_FILE
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                if like is not None:
                    shutil.copyfile(f"{like}{suffix}", f"{path}{suffix}")
        made = cls(file_url(path))
        made.kept = False
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
        return made

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a transaction that sees one state of the database."""
        with self._translate_errors(), self._engine.connect() as connection:
            if self.file is None:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            else:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a transaction during which no other writes; it is kept when the block ends well."""
        with self._translate_errors(), self._engine.connect() as connection:
            connection.exec_driver_sql(_TURN[self._engine.dialect.name])
            yield connection
            connection.commit()

    @contextlib.contextmanager
    def changing(self) -> Iterator[Connection]:
        """Give a transaction with locks of rows, in which others write; ``writing`` with SQLite."""
        if self.file is not None:
            with self.writing() as connection:
                yield connection
            return
        with self._translate_errors(), self._engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Try to be the only process that does something; ``False`` where another does it already.

        The kernel, or the server, ends the claim of a process that ends, however it ends.
        """
        if self.file is None:
            with self._translate_errors(), self._engine.connect() as connection:
                isolated = connection.execution_options(isolation_level="AUTOCOMMIT")
                yield from _on_server(isolated, zlib.crc32(name.encode()))
            return
        with contextlib.ExitStack() as held:
            lock = self.file.with_name(f"{self.file.name}.{name}.lock")
            try:
                is_ours = held.enter_context(claimed(lock))
            except OSError as error:
                raise self._error(f"{self.name}: {error.strerror}") from error
            yield is_ours

    def close(self) -> None:
        """Let go of connections; the next call makes new ones."""
        self._engine.dispose()

    def _server(self, url: URL) -> Engine:
        try:
            return create_engine(
                url,
                hide_parameters=True,
                pool_pre_ping=True,  # a server that was started again is found again
                pool_size=_CONNECTIONS,
                max_overflow=0,
                pool_timeout=_PATIENCE_S,
                connect_args={
                    "connect_timeout": _PATIENCE_S,
                    "options": " ".join(
                        [*_options(url), f"-c statement_timeout={_LONGEST_STATEMENT_S}s"]
                    ),
                },
            )
        except ImportError as error:
            raise self._error(
                f"{self.name}: needs the driver psycopg: pip install 'psycopg[binary]'"
            ) from error

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise  # not the database's but our own mistake
        # A driver's own come from rows that are fetched as it gives them.
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            # Cut off from its cause, whose text is not ours to vouch for.
            raise self._error(f"{self.name}: {self._discreet(error)}") from None

    def _discreet(self, error: Exception) -> str:
        line = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line


def _on_server(connection: Connection, number: int) -> Iterator[bool]:
    key = {"number": number}
    mine = bool(connection.scalar(text("SELECT pg_try_advisory_lock(:number)"), key))
    try:
        yield mine
    finally:
        if mine:
            connection.execute(text("SELECT pg_advisory_unlock(:number)"), key)


def _options(url: URL) -> list[str]:
    """Give what the URL itself asks of the server; an argument of ours would take its place."""
    given = url.query.get("options", ())
    return [given] if isinstance(given, str) else list(given)


def _sqlite(url: URL) -> Engine:
    # A file that was put back from a backup must not be written to under its old inode: no
    # connection outlives its use.
    engine = create_engine(
        url, hide_parameters=True, poolclass=NullPool, connect_args={"timeout": _PATIENCE_S}
    )
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: sqlite3.Connection, record: Any) -> None:  # noqa: ARG001
    connection.isolation_level = None  # transactions begin where we say so
    for pragma in _PRAGMAS:
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(pragma)


_Answer = TypeVar("_Answer")


def with_database(results: Path, work: Callable[[Database], _Answer]) -> _Answer:
    """Do something with the database of a results folder; nothing is made where there is no folder.

    A folder that is read-only, a full disk, and a file that is damaged or no database are no
    obstacle: ``work`` is then done with a copy, or from the beginning, and nothing of it stays.
    """
    if not results.is_dir():
        return work(Database.temporary())
    database = Database(find_database_url(results))
    try:
        return work(database)
    except DatabaseError:
        if database.file is None:
            raise
    try:
        return work(Database.temporary(database.file))
    except DatabaseError:
        return work(Database.temporary())


_READ_ONLY: Final = {"sqlite": "PRAGMA query_only=ON", "postgresql": "SET TRANSACTION READ ONLY"}
_REFUSALS: Final = {
    "interrupted": f"expected an answer in {_LONGEST_STATEMENT_S} s, found none",
    "not authorized": "expected tables of this database alone, found another file (ATTACH)",
}
"""What SQLite says of a statement that was given up, or not begun, in words for people."""


def ask(database: Database, statement: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Answer one SQL statement by the names of columns, and rows.

    A second statement, or another file (``ATTACH``), is refused; after two minutes it is given up.
    """
    with database.reading() as connection:
        connection.exec_driver_sql(_READ_ONLY[connection.dialect.name])
        if database.file is not None:
            _confine(connection.connection.dbapi_connection)
        return _answer_statement(connection, statement)


def _confine(driver: Any) -> None:
    """Have SQLite give up what takes too long, as a server does, and open no other file."""
    deadline = time.monotonic() + _LONGEST_STATEMENT_S
    driver.set_progress_handler(lambda: time.monotonic() > deadline, _INSTRUCTIONS)
    opening = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    driver.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_DENY if action in opening else sqlite3.SQLITE_OK
    )


def _answer_statement(
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
        said = _REFUSALS.get(str(error), " ".join(str(error).split()))
        raise DatabaseError(f"the statement: {said}") from error
    finally:
        cursor.close()


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
