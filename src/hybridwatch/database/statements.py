"""What is asked of verdicts and levels, as SQL; ``last`` is the newest record that counts."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, Select, and_, case, distinct, func, select

from hybridwatch.analysis.report import EXPECTED
from hybridwatch.database.frames import plain
from hybridwatch.database.schema import LEVEL, PAIR, QUESTION, RECORD, RUN, SERIES, SIDE, VERDICT

CELL: Final = ("scenario", "version", "digest", "testbed", "metric", "statistic")
"""What makes numbers a series: only these may be compared."""
HISTORY: Final = ("scenario", "testbed", "metric", "statistic")
"""What is drawn in one chart: a series for each definition of the scenario."""
STANDING: Final = ("scenario", "digest", "baseline", "contender", "testbed", "metric", "statistic")
"""What makes two verdicts answers to one question."""
OWN: Final = tuple(c.name for c in VERDICT.c if c.name not in {"record", "question", "started_at"})
"""What a verdict says itself."""
_BEFORE_ALL: Final = -(2**62)


def every_level(last: int | BindParameter[int], *which: ColumnElement[bool]) -> Select[Any]:
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


def question_columns() -> Iterator[ColumnElement[Any]]:
    """Give the columns of ``STANDING``."""
    for name in STANDING:
        column = (PAIR if name in PAIR.c else QUESTION).c[name]
        # A run of one build was held against what its scenario expects.
        alone = (column == "", EXPECTED)
        yield case(alone, else_=column).label(name) if name == "baseline" else column


def every_verdict(last: int) -> Select[Any]:
    """Ask for every verdict, oldest first, in the order of its report."""
    return (
        select(
            RECORD.c.path.label("record"),
            RUN.c.run,
            RUN.c.version,
            plain(RUN.c.started_at),
            *question_columns(),
            *(VERDICT.c[name] for name in OWN),
        )
        .join_from(VERDICT, QUESTION, QUESTION.c.id == VERDICT.c.question)
        .join(PAIR, PAIR.c.id == QUESTION.c.pair)
        .join(RUN, RUN.c.record == VERDICT.c.record)
        .join(RECORD, RECORD.c.id == VERDICT.c.record)
        .where(VERDICT.c.record <= last)
        .order_by(RUN.c.started_at, RECORD.c.path, VERDICT.c.place)
    )


def whatever_load(questions: Select[Any]) -> Select[Any]:
    """Ask for questions with those that differ from them in the scenario's definition alone."""
    other = QUESTION.alias("other")
    names = ("scenario", "pair", "testbed", "metric", "statistic")
    alike = and_(*(QUESTION.c[name] == other.c[name] for name in names))
    return select(QUESTION.c.id).join(other, alike).where(other.c.id.in_(questions))


def tallied(last: int, roles: Collection[str], special: Collection[str]) -> Select[Any]:
    """Ask how many comparisons of each run say what, those of special metrics apart as well."""
    return (
        select(
            RECORD.c.path.label("record"),
            VERDICT.c.verdict,
            func.count().label("n"),
            func.count(case((QUESTION.c.metric.in_(special), 1))).label("n_special"),
        )
        .join_from(VERDICT, RUN, RUN.c.record == VERDICT.c.record)
        .join(RECORD, RECORD.c.id == VERDICT.c.record)
        .join(QUESTION, QUESTION.c.id == VERDICT.c.question)
        .where(RUN.c.role.in_(roles), VERDICT.c.record <= last)
        .group_by(VERDICT.c.record, RECORD.c.path, VERDICT.c.verdict)
    )


def is_latest(last: int) -> ColumnElement[bool]:
    """Say that a verdict is the newest on its question."""
    later = VERDICT.alias("later")
    newest = (
        select(later.c.record)
        .where(later.c.question == QUESTION.c.id, later.c.record <= last)
        .order_by(later.c.started_at.desc(), later.c.record.desc())
        .limit(1)
        .correlate(QUESTION)
        .scalar_subquery()
    )
    return VERDICT.c.record == newest


def holds_since(last: int) -> ColumnElement[Any]:
    """Give the moment since when a verdict holds without another on its question between."""
    other, same = VERDICT.alias("other"), VERDICT.alias("same")
    last_other = (
        select(func.max(other.c.started_at))
        .where(
            other.c.question == VERDICT.c.question,
            other.c.verdict != VERDICT.c.verdict,
            other.c.record <= last,
        )
        .correlate(VERDICT)
        .scalar_subquery()
    )
    since = (
        select(func.min(same.c.started_at))
        .where(
            same.c.question == VERDICT.c.question,
            same.c.record <= last,
            same.c.started_at > func.coalesce(last_other, _BEFORE_ALL),
        )
        .correlate(VERDICT)
        .scalar_subquery()
    )
    # Of one moment two answers can stand: the newest one then holds since its own.
    return func.coalesce(since, VERDICT.c.started_at)
