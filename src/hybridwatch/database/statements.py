"""What is asked of verdicts, as SQL; ``last`` is the newest record that counts."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, case, func, select

from hybridwatch.analysis.alone import EXPECTED
from hybridwatch.database.frames import plain
from hybridwatch.database.schema import PAIR, QUESTION, RECORD, RUN, VERDICT

STANDING: Final = ("scenario", "digest", "baseline", "contender", "testbed", "metric", "statistic")
"""What makes two verdicts answers to one question."""
OWN: Final = tuple(c.name for c in VERDICT.c if c.name not in {"record", "question", "started_at"})
"""What a verdict says itself."""

_BEFORE_ALL: Final = -(2**62)


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
