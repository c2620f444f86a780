"""A store as of one moment, as SQL and frames; ``last`` is the newest record that counts."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Double,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    distinct,
    func,
    select,
    type_coerce,
)
from sqlalchemy.types import TypeEngine

from hybridwatch.analysis.report import EXPECTED
from hybridwatch.database.connection import Database
from hybridwatch.database.reading import Listed, list_stamped, unpacked
from hybridwatch.database.schema import (
    LEVEL,
    PAIR,
    QUESTION,
    RECORD,
    REPORT,
    RUN,
    SERIES,
    SIDE,
    VERDICT,
)
from hybridwatch.database.writing import explain_rebuild, find_rules, standing_rules
from hybridwatch.errors import DatabaseError

_NO_TIME: Final = -(2**63)
"""What NumPy calls NaT."""


class _Microseconds(BigInteger):
    """A time as it lies in the database."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric and statistic of one scenario and testbed, over runs in time.

    Numbers of two ``digest``s are two series that may not be compared.

    Attributes:
        points: A row for each trial: ``run``, ``record``, ``started_at``, ``position`` (of the run
            among all of them, from 0), ``build``, ``line``, ``release``, ``side``, ``nth`` (among
            the side's, from 0), ``trial`` (its index in the run), ``value`` (base units; for a
            proportion the trial's share of right answers), ``revision``, ``testbed``.
        levels: A row for each side of each run: ``run`` to ``side`` as above, ``value`` (median of
            the points), ``n`` (how many), ``fixes`` (JSON: state by fix), the scenario's
            ``version`` and ``digest``.
    """

    points: pd.DataFrame
    levels: pd.DataFrame


def plain(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Leave a time as a number, of which frames make their own a whole column at once."""
    return type_coerce(column, _Microseconds).label(column.key or "")


def build_frame(wanted: Select[Any], rows: Sequence[Any]) -> pd.DataFrame:
    """Make a frame of the rows that a statement gave."""
    kinds = wanted.selected_columns
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return pd.DataFrame(
        {
            name: _column(column.type, values)
            for (name, column), values in zip(kinds.items(), columns, strict=True)
        }
    )


def _column(kind: TypeEngine[Any], values: Sequence[Any]) -> Any:
    """Make a column of a frame: times aware, numbers without a value NaN."""
    if isinstance(kind, _Microseconds):
        whole = [_NO_TIME if value is None else value for value in values]
        times = pd.Series(np.array(whole, np.int64).view("datetime64[us]"))
        return times.dt.tz_localize("UTC")
    if isinstance(kind, Double):
        return np.array(values, np.float64)
    return np.array(values, np.int64) if isinstance(kind, Integer) else pd.Series(values, dtype=str)


def with_group(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``group``, the first part of the scenario's id."""
    return frame.assign(group=[scenario.partition("/")[0] for scenario in frame["scenario"]])


def list_frame_lines(levels: pd.DataFrame) -> pd.DataFrame:
    """Put the medians of each series and pair, which lie together, into one row."""
    place = levels[["series", "pair"]].to_numpy(np.int64)
    first = np.flatnonzero(np.r_[len(place) > 0, np.any(place[1:] != place[:-1], axis=1)])
    last = np.r_[first[1:], len(place)] - 1
    medians = np.split(levels["median"].to_numpy(), first[1:])
    of_line = levels.iloc[last[: len(first)]]
    found: pd.DataFrame = of_line[["series", "pair"]].reset_index(drop=True)
    found["newest"] = of_line["started_at"].array
    found["medians"] = [part.tolist() for part in medians[: len(first)]]
    return found


CELL: Final = ("scenario", "version", "digest", "testbed", "metric", "statistic")
"""What makes numbers a series: only these may be compared."""
HISTORY: Final = ("scenario", "testbed", "metric", "statistic")
"""What is drawn in one chart: a series for each definition of the scenario."""
STANDING: Final = ("scenario", "digest", "baseline", "contender", "testbed", "metric", "statistic")
"""What makes two verdicts answers to one question."""
OWN: Final = tuple(c.name for c in VERDICT.c if c.name not in {"record", "question", "started_at"})
"""What a verdict says itself."""
_Newest: TypeAlias = int | BindParameter[int]
_BEFORE_ALL: Final = -(2**62)


def every_level(last: _Newest, *which: ColumnElement[bool]) -> Select[Any]:
    """Select levels, metric by metric, oldest run first."""
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


def counted_cells(last: _Newest) -> Select[Any]:
    """Select every series, with its number of runs and the start of the last one."""
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


def last_medians(last: _Newest, n: int) -> Select[Any]:
    """Select the contender's last ``n`` medians of each series and pair, oldest first."""
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


def every_verdict(last: _Newest) -> Select[Any]:
    """Select every verdict, oldest first, in the order of its report."""
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
    """Select questions with those that differ from them in the scenario's definition alone."""
    other = QUESTION.alias("other")
    names = ("scenario", "pair", "testbed", "metric", "statistic")
    alike = and_(*(QUESTION.c[name] == other.c[name] for name in names))
    return select(QUESTION.c.id).join(other, alike).where(other.c.id.in_(questions))


def tallied(last: _Newest, roles: Collection[str], special: Collection[str]) -> Select[Any]:
    """Count how many comparisons of each run say what, those of special metrics apart as well."""
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


def is_latest(last: _Newest) -> ColumnElement[bool]:
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


def holds_since(last: _Newest) -> ColumnElement[Any]:
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


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OF_POINT: Final = ("record", "build", "line", "release", "side", "value", "n")
# Made once: SQLAlchemy takes longer to put it together than SQLite to answer.
_LEVELS: Final = every_level(
    bindparam("last"), *(SERIES.c[name] == bindparam(name) for name in CELL)
)
_POINTS: Final = _LEVELS.with_only_columns(
    *(_LEVELS.selected_columns[name] for name in ("run", "started_at", *_OF_POINT))
)


class RulesChangedError(DatabaseError):
    """Another process has brought the database to other rules: the moment is over."""


class StoreMoment:
    """What a store held at one moment: what comes, or vanishes, later is not seen."""

    def __init__(
        self, results: Path, database: Database, listed: Mapping[str, Listed], rules: str
    ) -> None:
        self.results = results
        self.kept = database.kept
        self.database = database
        self._listed = listed
        self._rules = rules
        with database.reading() as connection:
            newest = self._newest = [connection.scalar(select(func.max(RECORD.c.id))) or 0]
        # Looked up when a statement runs: the database may be another by then.
        self._last = bindparam("newest", type_=Integer, callable_=lambda: newest[0])

    def is_current(self) -> bool:
        """Whether the store still holds the same records; a listing, nothing is read."""
        try:
            with self.database.reading() as connection:
                if find_rules(connection) != self._rules:
                    return False
        except DatabaseError:
            return False  # the next one to open it says what is wrong
        return list_stamped(self.results) == self._listed

    @cached_property
    def stamp(self) -> str:
        """A digest that changes with the records, and with the rules by which they are judged."""
        lines = [f"{name} {astuple(one.stamp)}" for name, one in self._listed.items()]
        return hashlib.sha256("\n".join([self._rules, *lines]).encode()).hexdigest()

    def read_stamp(self, record: str) -> str:
        """Give a digest as ``stamp`` of one record, by its path below the results folder."""
        line = f"{self._rules} {record} {astuple(self._listed[record].stamp)}"
        return hashlib.sha256(line.encode()).hexdigest()

    def points(
        self, scenario: str, version: int, digest: str, testbed: str, metric: str, statistic: str
    ) -> Sequence[dict[str, Any]]:
        """Give the levels of one series in plain values, oldest first; none when there is none.

        Each is a side of a run: ``run_id``, ``record``, ``started_at``, ``build``, ``line``,
        ``release``, ``side``, ``value`` (median of the trials, in base units) and ``n`` (how many).
        """
        cell = (scenario, int(version), digest, testbed, metric, statistic)
        given = {**dict(zip(CELL, cell, strict=True)), "last": self._newest[0]}
        return [_name_point(*row) for row in self._rows(_POINTS, given)]

    def report(self, record: str) -> bytes | None:
        """Give a report as ``compare --json`` prints it; ``None`` where a run has none."""
        wanted = (
            select(REPORT.c.json)
            .join_from(REPORT, RECORD, RECORD.c.id == REPORT.c.record)
            .where(RECORD.c.path == record, RECORD.c.id <= self._last)
        )
        found = self._rows(wanted)
        return unpacked(found[0][0]) if found else None

    def _rows(
        self, wanted: Select[Any], given: Mapping[str, Any] | None = None
    ) -> Sequence[tuple[Any, ...]]:
        with self.database.reading() as connection:
            if standing_rules(connection) != self._rules:
                raise RulesChangedError(explain_rebuild(self.database))
            # As the driver gives them: nothing here is another type in Python than in the database,
            # and rows of SQLAlchemy's own take three times as long.
            rows: Sequence[tuple[Any, ...]] = connection.execute(wanted, given).cursor.fetchall()
            return rows


def _name_point(run: str, microseconds: int, *others: Any) -> dict[str, Any]:
    """Name the values of a row of ``_POINTS``, as the driver gives it."""
    moment = _EPOCH + timedelta(microseconds=microseconds)
    named = dict(zip(_OF_POINT, others, strict=True))
    return {"run_id": run, "record": named.pop("record"), "started_at": moment.isoformat(), **named}
