"""What is asked of levels, as SQL; ``last`` is the newest record that counts."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, distinct, func, select

from hybridwatch.database.frames import plain
from hybridwatch.database.schema import LEVEL, RECORD, RUN, SERIES, SIDE

CELL: Final = ("scenario", "version", "digest", "testbed", "metric", "statistic")
"""What makes numbers a series: only these may be compared."""
HISTORY: Final = ("scenario", "testbed", "metric", "statistic")
"""What is drawn in one chart: a series for each definition of the scenario."""


def every_level(last: int, *which: ColumnElement[bool]) -> Select[Any]:
    """Ask for levels, metric by metric, oldest run first."""
    return (
        select(
            SERIES.c.metric,
            SERIES.c.statistic,
            SERIES.c.version,
            SERIES.c.digest,
            RUN.c.run,
            RECORD.c.path.label("record"),
            plain(LEVEL.c.started_at),
            SIDE.c.build,
            SIDE.c.line,
            SIDE.c.release,
            LEVEL.c.side,
            SIDE.c.fixes,
            RUN.c.revision,
            LEVEL.c.median.label("value"),
            LEVEL.c.n,
            LEVEL.c.record.label("number"),
        )
        .join_from(LEVEL, RECORD, RECORD.c.id == LEVEL.c.record)
        .join(SERIES, SERIES.c.id == LEVEL.c.series)
        .join(RUN, RUN.c.record == LEVEL.c.record)
        .join(SIDE, (SIDE.c.record == LEVEL.c.record) & (SIDE.c.side == LEVEL.c.side))
        .where(*which, LEVEL.c.record <= last)
        .order_by(
            SERIES.c.metric, SERIES.c.statistic, LEVEL.c.started_at, RECORD.c.path, LEVEL.c.side
        )
    )


def counted_cells(last: int) -> Select[Any]:
    """Ask for every series, with its number of runs and the start of the last one."""
    counted = (
        select(
            LEVEL.c.series,
            func.count(distinct(LEVEL.c.record)).label("runs"),
            func.max(LEVEL.c.started_at).label("newest"),
        )
        .where(LEVEL.c.record <= last)
        .group_by(LEVEL.c.series)
        .subquery()
    )
    return (
        select(*(SERIES.c[name] for name in CELL), counted.c.runs, plain(counted.c.newest))
        .join_from(SERIES, counted, counted.c.series == SERIES.c.id)
        .order_by(*(SERIES.c[name] for name in CELL))
    )


def last_medians(last: int, n: int) -> Select[Any]:
    """Ask for the contender's last ``n`` medians of each series and pair, oldest first."""
    age = func.row_number().over(
        partition_by=(LEVEL.c.series, LEVEL.c.pair),
        order_by=(LEVEL.c.started_at.desc(), LEVEL.c.record.desc()),
    )
    ranked = (
        select(LEVEL.c.series, LEVEL.c.pair, LEVEL.c.started_at, LEVEL.c.median, age.label("age"))
        .where(LEVEL.c.pair != 0, LEVEL.c.record <= last)
        .subquery()
    )
    return (
        select(ranked.c.series, ranked.c.pair, ranked.c.median, plain(ranked.c.started_at))
        .where(ranked.c.age <= n)
        .order_by(ranked.c.series, ranked.c.pair, ranked.c.age.desc())
    )
