"""One database, SQLite or PostgreSQL: connections, turns of writers, errors in plain words."""

import contextlib
import shutil
import sqlite3
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from hybridwatch.database.url import DATABASE_FILE, file_url, find_secrets, shown
from hybridwatch.errors import DatabaseError, HybridwatchError
from hybridwatch.system.file_lock import claimed

_PATIENCE_S: Final = 30
"""How long to wait for other writers, or for a server to answer."""
_LONGEST_STATEMENT_S: Final = 120
"""A statement that a server has not answered by then is given up."""
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

    Args:
        error: What is raised when it cannot be used.

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
        """Make a database that goes with this object.

        It begins as a copy of the SQLite file ``like``, which is left out where it cannot be read.
        """
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
        """Give a transaction during which others write too; it locks each row before changing it.

        SQLite has no locks of rows: there it is ``writing``.
        """
        if self.file is not None:
            with self.writing() as connection:
                yield connection
            return
        with self._translate_errors(), self._engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Try to be the only process that does something, which may take long.

        Gives ``False`` where another process does it already. The kernel, or the server, ends the
        claim of a process that ends, however it ends.
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
                        [
                            *_options(url),
                            f"-c statement_timeout={_LONGEST_STATEMENT_S}s",
                        ]
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
        except SQLAlchemyError as error:
            # Cut off from its cause, whose text is not ours to vouch for.
            raise self._error(f"{self.name}: {self._discreet(error)}") from None

    def _discreet(self, error: SQLAlchemyError) -> str:
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
