"""One series as plain rows: what is asked often, and needs no frame."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, bindparam, select

from hybridwatch.database.frames import plain
from hybridwatch.database.schema import LEVEL, RECORD, RUN, SERIES, SIDE
from hybridwatch.database.statements import CELL

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Point(NamedTuple):
    """A side of a run in a series.

    Attributes:
        record: Its path below the results folder.
        side: Index into the run's builds.
        value: Median of the trials, in base units.
        n: How many trials.
    """

    run_id: str
    record: str
    started_at: datetime
    build: str
    line: str
    release: str
    side: int
    value: float
    n: int


# Made once: SQLAlchemy takes longer to put it together than SQLite to answer.
POINTS: Final[Select[Any]] = (
    select(
        RUN.c.run.label("run_id"),
        RECORD.c.path.label("record"),
        plain(LEVEL.c.started_at),
        SIDE.c.build,
        SIDE.c.line,
        SIDE.c.release,
        LEVEL.c.side,
        LEVEL.c.median.label("value"),
        LEVEL.c.n,
    )
    .join_from(LEVEL, RECORD, RECORD.c.id == LEVEL.c.record)
    .join(SERIES, SERIES.c.id == LEVEL.c.series)
    .join(RUN, RUN.c.record == LEVEL.c.record)
    .join(SIDE, (SIDE.c.record == LEVEL.c.record) & (SIDE.c.side == LEVEL.c.side))
    .where(*(SERIES.c[name] == bindparam(name) for name in CELL))
    .where(LEVEL.c.record <= bindparam("last"))
    .order_by(LEVEL.c.started_at, RECORD.c.path, LEVEL.c.side)
)
"""The points of the series that the parameters of ``CELL`` name, of records up to ``last``."""


def build_point(row: tuple[Any, ...]) -> Point:
    """Read a row of ``POINTS``, as the driver gives it."""
    run, record, microseconds, *rest = row
    return Point(run, record, _EPOCH + timedelta(microseconds=microseconds), *rest)
