"""Acts in a database: SQLite beside the records, or PostgreSQL for a team.

Every act is one row that is added and never changed. Writers take turns (a lock that the database
keeps), and each names how many acts it knew of: if there are more now, it is told instead of
overruling somebody it never heard of.
"""

import contextlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import (
    URL,
    DateTime,
    Dialect,
    Engine,
    NullPool,
    String,
    Text,
    TypeDecorator,
    create_engine,
    event,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import TriageError
from hybridwatch.triage.act import Act, Deed, checked_name
from hybridwatch.triage.alerts import Alert
from hybridwatch.triage.database_url import secrets_of, shown, url_of
from hybridwatch.triage.decisions import (
    UNDECIDED,
    Decisions,
    Entry,
    Seen,
    SeenPart,
    TriageConflict,
)

TRIAGE_SCHEMA: Final = 2
"""Version of the tables; they are made when the first act is kept.

In version 1 every metric had an alert of its own. The tables are the same: acts of that time stay
under the keys of their metrics (``Question.key``), and the first new act raises the version.
"""

_PATIENCE_S: Final = 10
"""How long to wait for other writers, or for a server to answer."""
_TURN: Final = {
    "sqlite": "BEGIN IMMEDIATE",
    # Any number that all hybridwatch processes agree on; until the transaction ends.
    "postgresql": "SELECT pg_advisory_xact_lock(4187342430)",
}
"""How a writer waits for its turn."""


class _Utc(TypeDecorator[datetime]):
    """A time in UTC, also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class _Base(DeclarativeBase):
    type_annotation_map: Final = {datetime: _Utc, str: Text}


class _Schema(_Base):
    __tablename__ = "triage_schema"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class _Row(_Base):
    """One act.

    ``about`` is JSON, so that the table can be read without us: the matter, and since version 2
    under ``parts`` the metrics that were bad when the person acted.
    """

    __tablename__ = "triage_act"

    alert: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    about: Mapped[str]
    at: Mapped[datetime]
    who: Mapped[str]
    deed: Mapped[str]
    text: Mapped[str]
    until: Mapped[datetime | None]
    seen_run: Mapped[str]
    seen_started_at: Mapped[datetime]
    seen_verdict: Mapped[str]
    seen_effect: Mapped[float | None]
    seen_rank: Mapped[str]


class Triage:
    """The acts of one team. Threads may share it; processes each open their own.

    Args:
        url: As ``url_of`` gives it.

    Attributes:
        name: What to call the database, without a password.
    """

    def __init__(self, url: URL) -> None:
        self.name = shown(url)
        self._secrets = secrets_of(url)
        is_file = url.get_backend_name() == "sqlite"
        self._file = Path(str(url.database)) if is_file else None
        self._engine = self._connectable(url)

    def decisions(self) -> Mapping[str, Decisions]:
        """Read what people did, by the key of the alert. Makes no database where there is none.

        What was done when every metric had an alert of its own stands under the metric's old key.

        Raises:
            TriageError: The database cannot be read, or is of a newer hybridwatch.
        """
        if self._file and not self._file.exists():
            return {}
        with self._as_triage_errors(), Session(self._engine) as session:
            return self._read(session) if self._is_made(session) else {}

    def decide(self, alert: Alert, act: Act, who: str, now: datetime) -> Decisions:
        """Keep what a person did about an alert.

        Args:
            alert: As the person saw it, not as it is now.
            act: What was done.
            who: The name that the person gives.
            now: With a time zone.

        Returns:
            Everything decided about the alert, this act included. It has reached the disk.

        Raises:
            TriageConflict: Somebody else acted on it since; nothing was kept.
            TriageError: There is no such name, or the database cannot be written.
        """
        checked_name("who", who)
        key = alert.matter.key
        if act.deed is Deed.DUPLICATE and act.text == key:
            raise TriageError("duplicate of: expected another alert, found this one")
        with self._as_triage_errors(), Session(self._engine) as session:
            session.connection().exec_driver_sql(_TURN[self._engine.dialect.name])
            if not self._is_made(session):
                _Base.metadata.create_all(session.connection())
                session.add(_Schema(version=TRIAGE_SCHEMA))
            elif session.scalar(select(_Schema.version)) != TRIAGE_SCHEMA:
                session.execute(update(_Schema).values(version=TRIAGE_SCHEMA))
            known = self._read(session, key).get(key, UNDECIDED)
            seen = alert.decisions.version
            if known.version != seen:
                raise TriageConflict(known, seen)
            entry = Entry(seen + 1, now.astimezone(UTC), who, act, alert.seen)
            session.add(_row(alert, entry))
            session.commit()
        return Decisions((*known.entries, entry))

    def decide_all(
        self, alerts: Iterable[Alert], act: Act, who: str, now: datetime
    ) -> Mapping[str, TriageError]:
        """Keep one answer to many alerts; what cannot be kept of one is kept of the others.

        Args:
            alerts: As the person saw them.
            act: What was done.
            who: The name that the person gives.
            now: With a time zone.

        Returns:
            Why nothing was kept (``TriageConflict`` if somebody was faster), by the key of the
            alert; everything else is kept.

        Raises:
            TriageError: There is no such name; nothing was kept.
        """
        checked_name("who", who)
        failed: dict[str, TriageError] = {}
        for alert in alerts:
            try:
                self.decide(alert, act, who, now)
            except TriageError as error:
                failed[alert.matter.key] = error
        return failed

    def close(self) -> None:
        """Let go of connections; the next call makes new ones."""
        self._engine.dispose()

    def _connectable(self, url: URL) -> Engine:
        if self._file is None:
            try:
                return create_engine(
                    url,
                    hide_parameters=True,
                    pool_pre_ping=True,
                    connect_args={"connect_timeout": _PATIENCE_S},
                )
            except ImportError as error:
                raise TriageError(
                    f"{self.name}: needs the driver psycopg: pip install 'psycopg[binary]'"
                ) from error
        # A file that was put back from a backup must not be written to under its old inode: no
        # connection outlives its use.
        engine = create_engine(
            url, hide_parameters=True, poolclass=NullPool, connect_args={"timeout": _PATIENCE_S}
        )
        event.listen(engine, "connect", _let_readers_read)
        return engine

    def _is_made(self, session: Session) -> bool:
        """Whether there are tables, and of a version that we know."""
        if not inspect(session.connection()).has_table(_Schema.__tablename__):
            return False
        version = session.scalar(select(_Schema.version))
        if version is not None and version > TRIAGE_SCHEMA:
            raise TriageError(
                f"{self.name}: schema version: found {version}, but this hybridwatch reads up to "
                f"{TRIAGE_SCHEMA}: upgrade hybridwatch"
            )
        return version is not None

    def _read(self, session: Session, key: str = "") -> dict[str, Decisions]:
        wanted = select(_Row).order_by(_Row.alert, _Row.number)
        entries: defaultdict[str, list[Entry]] = defaultdict(list)
        for row in session.scalars(wanted.where(_Row.alert == key) if key else wanted):
            try:
                entries[row.alert].append(_entry(row))
            except (TypeError, ValueError) as error:
                raise TriageError(
                    f"{self.name}: act {row.number} on alert {row.alert}: {error}"
                ) from error
        return {alert: Decisions(tuple(acts)) for alert, acts in entries.items()}

    @contextlib.contextmanager
    def _as_triage_errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            # Cut off from its cause, whose text is not ours to vouch for.
            raise TriageError(f"{self.name}: {self._discreet(error)}") from None

    def _discreet(self, error: SQLAlchemyError) -> str:
        line = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_triage(results: Path, given: str = "") -> Triage:
    """Open the decisions of a results folder.

    Args:
        results: The results folder; nothing is made in it before somebody decides something.
        given: URL of another database, from ``--triage`` or ``HYBRIDWATCH_TRIAGE``.

    Raises:
        TriageError: The URL cannot be used, or its driver is not installed.
    """
    return Triage(url_of(results, given))


def _let_readers_read(connection: sqlite3.Connection, record: Any) -> None:  # noqa: ARG001
    # With a write-ahead log readers see the last state while somebody writes. Where it cannot be
    # had (a read-only file, another process asking for it right now), everything works without.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")


def _row(alert: Alert, entry: Entry) -> _Row:
    return _Row(
        alert=alert.matter.key,
        number=entry.number,
        about=_about(alert, entry.seen),
        at=entry.at,
        who=entry.who,
        deed=entry.act.deed.value,
        text=entry.act.text,
        until=entry.act.until,
        seen_run=entry.seen.run_id,
        seen_started_at=entry.seen.started_at,
        seen_verdict=entry.seen.verdict.value,
        seen_effect=entry.seen.effect,
        seen_rank=entry.seen.rank.value,
    )


def _about(alert: Alert, seen: Seen) -> str:
    parts = [asdict(part) for part in seen.parts]
    return json.dumps({**alert.matter.facts(), "parts": parts}, sort_keys=True)


def _parts(about: str) -> tuple[SeenPart, ...]:
    """Read what was bad; unknown for an act of version 1, which is about one metric."""
    found: Sequence[dict[str, Any]] = json.loads(about).get("parts", ())
    return tuple(SeenPart(**part) for part in found)


def _entry(row: _Row) -> Entry:
    seen = Seen(
        run_id=row.seen_run,
        started_at=row.seen_started_at,
        verdict=Verdict(row.seen_verdict),
        effect=row.seen_effect,
        rank=Action(row.seen_rank),
        parts=_parts(row.about),
    )
    return Entry(row.number, row.at, row.who, Act(Deed(row.deed), row.text, row.until), seen)
