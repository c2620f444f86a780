"""Every table of the database; ``docs/database.md`` draws them and says what each column means.

What is *derived* from records is dropped and made again when the rules change (``RULES``), and
never migrated. What people decided and what machines are to do is *kept*: it changes only by the
migrations next to this module.

Texts that stand in many rows are kept once, in ``series`` and ``question``, and times are whole
microseconds since 1970 (UTC), so that a value takes some 25 bytes and a series is one range.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

ROWS_VERSION: Final = 7
"""Raise it when a record gives other rows although ``RULES_VERSION`` is the same: other columns or
other numbers of a trial. Every database then makes what is derived again."""

METADATA: Final = MetaData()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """An aware time as whole microseconds since 1970: exact, and the same in every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Count from 1970."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Give it in UTC."""
        return None if value is None else _EPOCH + value * _MICROSECOND


class Utc(TypeDecorator[datetime]):
    """A time in UTC, also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Leave no other zone in."""
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Give it in UTC."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _filled(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _optional(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


RULES: Final = Table("rules", METADATA, Column("digest", String(16), primary_key=True))
"""One row: the rules by which everything derived was made."""

RECORD: Final = Table(
    "record",
    METADATA,
    # Never used twice: a process that opened the database before does not see what came after.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("path", Text, nullable=False, unique=True),
    *_filled(BigInteger, "record_ns", "record_size", "bulk_ns", "bulk_size"),
    Column("judged", Boolean, nullable=False),
    Column("broken", Text, nullable=False),
    sqlite_autoincrement=True,
)

PAIR: Final = Table(
    "pair",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_filled(Text, "baseline", "contender"),
    UniqueConstraint("baseline", "contender"),
)
"""Lines of the builds that a run compares; a run of one build has an empty baseline."""

RUN: Final = Table(
    "run",
    METADATA,
    Column("record", BigInteger, primary_key=True, autoincrement=False),
    Column("run", Text, nullable=False),
    Column("sides", SmallInteger, nullable=False),
    Column("scenario", Text, nullable=False),
    Column("version", Integer, nullable=False),
    *_filled(Text, "digest", "settings", "testbed", "machine"),
    Column("started_at", Moment, nullable=False),
    Column("committed_at", Moment),
    Column("pair", Integer, nullable=False),
    *_filled(Text, "role", "revision", "source", "sha256", "doubts", "trouble"),
    Index("run_of_scenario", "scenario", "testbed", "started_at"),
)

SIDE: Final = Table(
    "side",
    METADATA,
    Column("record", BigInteger, nullable=False),
    Column("side", SmallInteger, nullable=False),
    *_filled(Text, "build", "line", "release", "accelerator", "fixes"),
    Column("failures", Integer, nullable=False),
    PrimaryKeyConstraint("record", "side"),
    sqlite_with_rowid=False,
)

SERIES: Final = Table(
    "series",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("scenario", Text, nullable=False),
    Column("version", Integer, nullable=False),
    *_filled(Text, "digest", "testbed", "metric", "statistic"),
    UniqueConstraint("scenario", "version", "digest", "testbed", "metric", "statistic"),
)

LEVEL: Final = Table(
    "level",
    METADATA,
    *_filled(Integer, "series", "pair"),
    Column("started_at", Moment, nullable=False),
    Column("record", BigInteger, nullable=False),
    Column("side", SmallInteger, nullable=False),
    Column("median", Double, nullable=False),
    Column("n", Integer, nullable=False),
    PrimaryKeyConstraint("series", "pair", "started_at", "record", "side"),
    Index("level_of_record", "record"),
    sqlite_with_rowid=False,
)
"""A side of a run in a series; ``pair`` is 0 for a baseline, which has no line of its own."""

VALUE: Final = Table(
    "value",
    METADATA,
    Column("series", Integer, nullable=False),
    Column("record", BigInteger, nullable=False),
    Column("side", SmallInteger, nullable=False),
    *_filled(Integer, "nth", "trial"),
    Column("value", Double, nullable=False),
    PrimaryKeyConstraint("series", "record", "side", "nth"),
    sqlite_with_rowid=False,
)

QUESTION: Final = Table(
    "question",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_filled(Text, "scenario", "digest"),
    Column("pair", Integer, nullable=False),
    *_filled(Text, "testbed", "metric", "statistic"),
    UniqueConstraint("scenario", "digest", "pair", "testbed", "metric", "statistic"),
)

VERDICT: Final = Table(
    "verdict",
    METADATA,
    Column("record", BigInteger, nullable=False),
    Column("place", SmallInteger, nullable=False),
    Column("question", Integer, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("verdict", Text, nullable=False),
    *_optional(Double, "effect", "low", "high", "p_adjusted", "p_holm", "old", "new"),
    *_filled(Integer, "n_old", "n_new"),
    *_filled(Text, "gate", "doubt"),
    Column("doubts", SmallInteger, nullable=False),
    PrimaryKeyConstraint("record", "place"),
    Index("verdict_in_time", "question", "started_at", "record", "verdict"),
    sqlite_with_rowid=False,
)

REPORT: Final = Table(
    "report",
    METADATA,
    Column("record", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("json", LargeBinary, nullable=False),
)
"""What ``compare --json`` prints of a run of two builds, compressed (zlib): made by the way where
the run is judged, for to judge it again takes fifty times as long as to read this."""

DERIVED: Final[Sequence[Table]] = tuple(METADATA.tables.values())
"""All so far, made of records alone. ``rules`` comes first: what has no rules is made again."""

OF_RECORD: Final[Sequence[Table]] = (RUN, SIDE, LEVEL, VERDICT, REPORT)
"""Tables of which a record's rows go with it; those of ``value`` lie by series."""

ACT: Final = Table(
    "triage_act",
    METADATA,
    Column("alert", String(32), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("about", Text, nullable=False),
    Column("at", Utc, nullable=False),
    *_filled(Text, "who", "deed", "text"),
    Column("until", Utc),
    Column("seen_run", Text, nullable=False),
    Column("seen_started_at", Utc, nullable=False),
    Column("seen_verdict", Text, nullable=False),
    Column("seen_effect", Double),
    Column("seen_rank", Text, nullable=False),
)
"""What people did about alerts, a row for each decision, only ever added.

``about`` is JSON, so that the table can be read without us: the subject, and under ``parts`` the
metrics that were bad when the person acted. Acts of the time when every metric had an alert of its
own have no ``parts`` and stand under the keys of their metrics (``Question.key``).
"""

TESTBED: Final = Table(
    "fleet_testbed",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("declared", Text, nullable=False),
)
"""What the last plan said of a kind of host, as JSON, so that draining needs no file."""

JOB: Final = Table(
    "fleet_job",
    METADATA,
    Column("key", String(16), primary_key=True),
    Column("night", Text, nullable=False),
    Column("purpose", String(16), nullable=False),
    *_filled(Text, "scenario", "builds"),
    Column("testbed", String(64), nullable=False),
    *_filled(Text, "series", "wish"),
    Column("priority", Integer, nullable=False),
    *_filled(Moment, "planned_at", "until"),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    *_filled(Integer, "tries", "deaths", "attempt"),
    Column("cancel", Boolean, nullable=False),
    Column("record", Text, nullable=False),
    Index("fleet_job_by_state", "state", "until"),
    Index("fleet_job_by_night", "night", "state"),
)
"""One measurement that was requested; ``builds`` and ``wish`` are JSON."""

ATTEMPT: Final = Table(
    "fleet_attempt",
    METADATA,
    Column("job", String(16), nullable=False),
    Column("number", Integer, nullable=False),
    Column("host", Text, nullable=False),
    Column("driver", String(32), nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("end", String(16), nullable=False),
    *_filled(Text, "reason", "record", "log"),
    PrimaryKeyConstraint("job", "number"),
    Index("fleet_attempt_by_end", "end", "driver"),
)
"""A try at a job; ``end`` is empty while it runs, and ``record`` is named before it is written."""

HOST: Final = Table(
    "fleet_host",
    METADATA,
    Column("name", Text, primary_key=True),
    *_filled(Text, "machine", "labels"),
    Column("gpus", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    *_filled(Moment, "since", "seen_at"),
    Column("job", Text, nullable=False),
)
"""A machine that measures; ``job`` is what it measures now, empty when nothing."""

PROOF: Final = Table(
    "fleet_proof",
    METADATA,
    Column("host", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("facts", Text, nullable=False),
    *_optional(Double, "kernel_s", "a_a"),
    Column("passed", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("host", "at"),
)
"""What a host showed before it measured; ``a_a`` is the ratio of its two like halves."""

PLACEMENT: Final = Table(
    "fleet_placement",
    METADATA,
    *_filled(Text, "series", "host"),
    Column("since", Moment, nullable=False),
    PrimaryKeyConstraint("series", "host"),
)
"""Where a series is measured: on the first of its hosts, or on a stand-in's, apart from it."""

DRIVER: Final = Table(
    "fleet_driver",
    METADATA,
    Column("name", String(32), primary_key=True),
    Column("place", Text, nullable=False),
    *_filled(Moment, "started_at", "beat_at"),
    Column("ended", Boolean, nullable=False),
)
"""Who drains the queue; one that has not shown itself for a while is taken for dead."""

DELIVERY: Final = Table(
    "notify_told",
    METADATA,
    Column("channel", String(64), nullable=False),
    Column("topic", String(32), nullable=False),
    Column("standing", String(16), nullable=False),
    *_filled(Text, "seen", "content"),
    Column("messages", Integer, nullable=False),
    Column("place", Text, nullable=False),
    PrimaryKeyConstraint("channel", "topic"),
)
"""How a topic (an alert, or what a machine did not measure) stood when a channel was last brought
in line with it; ``seen`` and ``content`` are JSON, ``place`` is the number of its issue."""

MESSAGE: Final = Table(
    "notify_message",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("turn", Integer, nullable=False),
    Column("channel", String(64), nullable=False),
    Column("topic", String(32), nullable=False),
    Column("number", Integer, nullable=False),
    Column("news", String(16), nullable=False),
    Column("content", Text, nullable=False),
    Column("made_at", Moment, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("trouble", Text, nullable=False),
    Column("sent_at", Moment),
    Index("notify_message_by_channel", "channel", "sent_at"),
)
"""The outbox: one piece of news for one channel, kept until it is sent, and after that. ``turn`` is
the order of sending."""

TOKEN: Final = Table(
    "api_token",
    METADATA,
    Column("name", String(100), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scopes", Text, nullable=False),
    Column("made_at", Moment, nullable=False),
    *_optional(Moment, "expires_at", "revoked_at", "used_at"),
)
"""Who may do what by the API. ``digest`` is the SHA-256 of the token, which is not kept, and
``scopes`` are words. A revoked token stays: its name stands with what was done with it."""
