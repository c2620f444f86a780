"""The questions that screens ask of a store whose database was brought in line with its records."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from sqlalchemy import ColumnElement, ScalarSelect, Select, func, select

from hybridwatch.analysis.report import EXPECTED
from hybridwatch.database.connection import Database, with_database
from hybridwatch.database.moment import (
    CELL,
    HISTORY,
    OWN,
    STANDING,
    RulesChangedError,
    Series,
    StoreMoment,
    build_frame,
    counted_cells,
    every_level,
    every_verdict,
    holds_since,
    is_latest,
    last_medians,
    list_frame_lines,
    plain,
    question_columns,
    tallied,
    whatever_load,
    with_group,
)
from hybridwatch.database.reading import rules_digest
from hybridwatch.database.schema import (
    LEVEL,
    PAIR,
    QUESTION,
    RECORD,
    RUN,
    SERIES,
    SIDE,
    VALUE,
    VERDICT,
)
from hybridwatch.database.writing import find_new, judged_by_all, put_in_place
from hybridwatch.errors import DatabaseError

_TIMES: Final = ("started_at", "committed_at")
_OF_RUN: Final = tuple(
    c.name for c in RUN.c if c.name not in {"record", "pair", "settings", "machine", *_TIMES}
)
_OF_SIDE: Final = tuple(c.name for c in SIDE.c if c.name != "record")
_MOST_SIDES: Final = 2
_OF_POINT: Final = ("run", "record", "started_at", "build", "line", "release", "side")


class Index(StoreMoment):
    """Everything that the records of a store gave, as of one moment, in frames."""

    _is_anew = False

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many ``records`` (of them ``runs`` and ``broken``), ``values`` and ``verdicts``."""

        def count(what: ColumnElement[Any], number: ColumnElement[int]) -> ScalarSelect[Any]:
            # A sum is not looked up in the table's order: a smaller index will do.
            return select(what).where(number + 0 <= self._last).scalar_subquery()

        wanted = select(
            count(func.count(), RECORD.c.id),
            count(func.count(), RUN.c.record),
            count(func.sum(LEVEL.c.n), LEVEL.c.record),
            count(func.count(), VERDICT.c.record),
        )
        ((records, runs, values, verdicts),) = self._rows(wanted)
        return {
            "records": records,
            "runs": runs,
            "values": int(values or 0),
            "verdicts": verdicts,
            "broken": records - runs,
        }

    def runs(self, scenario: str | None = None) -> pd.DataFrame:
        """Give every side of every run, or of those of one scenario, oldest first.

        Returns:
            ``record`` (path below the results folder), ``run``, ``side``, ``sides`` (1 or 2),
                ``scenario``, ``version``, ``digest``, ``group`` (first part of the scenario's id),
                ``testbed``, ``started_at``, ``committed_at`` (NaT unless ingested with it),
                ``build`` (label), ``line``, ``release``, ``accelerator``, ``fixes`` (JSON: state by
                fix), ``revision`` (of the harness), ``source`` (format it was ingested from, else
                empty), ``sha256`` (of the record; empty for one of the first schema), ``role`` (of
                two builds), ``failures`` (failed trials of the side), ``doubts`` (held against the
                machine, one a line), ``trouble`` (why it has no report).
        """
        runs = self._runs
        if scenario is not None:
            runs = runs[runs["scenario"] == scenario].reset_index(drop=True)
        return runs.copy()

    def machines(self) -> pd.DataFrame:
        """Give ``testbed``, ``started_at``, ``machine`` (facts as JSON) of runs, oldest first."""
        return self._frame(
            select(RUN.c.testbed, plain(RUN.c.started_at), RUN.c.machine)
            .where(RUN.c.machine != "", RUN.c.record <= self._last)
            .order_by(RUN.c.started_at, RUN.c.record)
        )

    def roles(self) -> Mapping[str, str]:
        """Say what each run of two builds is for (``Role``), by its record, oldest run first."""
        found = self._frame(
            select(RECORD.c.path, RUN.c.role)
            .join_from(RUN, RECORD, RECORD.c.id == RUN.c.record)
            .where(RUN.c.role != "", RUN.c.record <= self._last)
            .order_by(RUN.c.started_at, RECORD.c.path)
        )
        return dict(zip(found["path"], found["role"], strict=True))

    def outcomes(self, scenario: str | None = None) -> pd.DataFrame:
        """Give ``record`` and ``verdict``, each verdict once that a comparison of the run has."""
        wanted = (
            select(RECORD.c.path.label("record"), VERDICT.c.verdict)
            .join_from(VERDICT, RECORD, RECORD.c.id == VERDICT.c.record)
            .where(VERDICT.c.record <= self._last)
            .distinct()
            .order_by(RECORD.c.path, VERDICT.c.verdict)
        )
        if scenario is not None:
            wanted = wanted.join(RUN, RUN.c.record == VERDICT.c.record).where(
                RUN.c.scenario == scenario
            )
        return self._frame(wanted)

    def tallies(self, roles: Collection[str], special: Callable[[str], bool]) -> pd.DataFrame:
        """Count comparisons by ``record`` and ``verdict``; ``n_special`` are of special metrics."""
        metrics = self._frame(select(QUESTION.c.metric).distinct())["metric"]
        return self._frame(tallied(self._last, roles, list(filter(special, metrics))))

    def broken(self) -> pd.DataFrame:
        """Give the records that cannot be read: ``record`` and ``reason``, oldest first."""
        return self._frame(
            select(RECORD.c.path.label("record"), RECORD.c.broken.label("reason"))
            .where(RECORD.c.broken != "", RECORD.c.id <= self._last)
            .order_by(RECORD.c.path)
        )

    def verdicts(
        self,
        *,
        scenario: str | None = None,
        records: Collection[str] | None = None,
        roles: Collection[str] | None = None,
        ever: Collection[str] | None = None,
        only: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Give comparisons, oldest run first; one build is held against what is expected.

        ``ever`` keeps only questions that had one of these verdicts in such runs, whatever the
        scenario's definition was. ``only`` names the columns that are wanted, of those below but
        ``group``.

        Returns:
            ``record``, ``run``, ``scenario``, ``version``, ``digest``, ``group``, ``testbed``,
                ``started_at``, ``baseline``, ``contender`` (lines of builds), ``place`` (in the
                report), ``metric``, ``statistic``, ``verdict``, ``effect``, ``low``, ``high`` (its
                interval), ``p_adjusted``, ``p_holm``, ``old``, ``new`` (centers, base units),
                ``n_old``, ``n_new``, ``gate`` (what a gate without a policy does: block, warn,
                watch), ``doubt`` (the first), ``doubts`` (how many). NaN where a report has
                nothing.
        """
        wanted = every_verdict(self._last)
        if scenario is not None:
            wanted = wanted.where(RUN.c.scenario == scenario)
        if records is not None:
            wanted = wanted.where(RECORD.c.path.in_(records))
        if roles is not None:
            wanted = wanted.where(RUN.c.role.in_(roles))
        if ever is not None:
            had = select(VERDICT.c.question).where(VERDICT.c.verdict.in_(ever))
            if roles is not None:
                had = had.join(RUN, RUN.c.record == VERDICT.c.record).where(RUN.c.role.in_(roles))
            wanted = wanted.where(
                VERDICT.c.question.in_(whatever_load(had.where(VERDICT.c.record <= self._last)))
            )
        if only is None:
            return self._as_verdicts(wanted)
        return self._frame(wanted.with_only_columns(*(wanted.selected_columns[n] for n in only)))

    def latest_verdicts(self) -> pd.DataFrame:
        """Give the newest answer to each question, as ``verdicts``, and ``stale``.

        Stale is one on which a later run of the same scenario, builds and testbed has no verdict.
        """
        return self._latest.copy()

    def turns(self) -> pd.DataFrame:
        """Give every question, and the ``started_at`` since which its newest answer holds.

        A question is ``scenario``, ``digest``, ``baseline``, ``contender``, ``testbed``,
        ``metric`` and ``statistic``.
        """
        return self._frame(
            every_verdict(self._last)
            .with_only_columns(
                *question_columns(), plain(holds_since(self._last).label("started_at"))
            )
            .where(is_latest(self._last))
            .order_by(None)
        )

    def cells(self) -> pd.DataFrame:
        """Give every series there is, with ``runs`` (how many) and ``newest`` (start).

        A series is ``scenario``, ``version``, ``digest``, ``testbed``, ``metric`` and
        ``statistic``.
        """
        return self._cells.copy()

    def series(self, scenario: str, testbed: str, metric: str, statistic: str) -> Series:
        """Give one history, oldest first, whatever the scenario's definition was."""
        cell = zip(HISTORY, (scenario, testbed, metric, statistic), strict=True)
        numbers = select(SERIES.c.id).where(*(SERIES.c[name] == value for name, value in cell))
        levels = _placed(self._frame(every_level(self._last, LEVEL.c.series.in_(numbers))))
        sizes = levels["n"].to_numpy(np.int64)
        values = self._frame(
            select(*(VALUE.c[name] for name in ("record", "side", "nth", "trial", "value")))
            .where(VALUE.c.series.in_(numbers), VALUE.c.record <= self._last)
            .order_by(VALUE.c.record, VALUE.c.side, VALUE.c.nth)
        )
        # Values lie by record, the answer is in order of time: each level's begin somewhere else.
        key = (levels["number"] * _MOST_SIDES + levels["side"]).to_numpy(np.int64)
        starts = np.empty(len(key), np.int64)
        ranked = np.argsort(key)
        starts[ranked] = np.cumsum(sizes[ranked]) - sizes[ranked]
        nth = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found = np.repeat(starts, sizes) + nth
        points = levels.iloc[np.repeat(np.arange(len(levels)), sizes)].reset_index(drop=True)
        points = points[[*_OF_POINT, "revision", "position"]].assign(
            testbed=testbed,
            nth=nth,
            trial=values["trial"].to_numpy()[found],
            value=values["value"].to_numpy(np.float64)[found],
        )
        return Series(points=points, levels=_shown(levels))

    def levels(self, scenario: str, testbed: str) -> Mapping[tuple[str, str], pd.DataFrame]:
        """Give ``Series.levels`` of a scenario on a testbed by metric and statistic, at once."""
        here = (SERIES.c.scenario == scenario, SERIES.c.testbed == testbed)
        found = self._frame(every_level(self._last, *here))
        parts = found.groupby(["metric", "statistic"], sort=False)
        return {
            (str(metric), str(statistic)): _shown(_placed(part.reset_index(drop=True)))
            for (metric, statistic), part in parts
        }

    def settings(self, scenario: str) -> Mapping[str, Mapping[str, str]]:
        """Give the settings of each definition of a scenario, by its digest, where that is kept."""
        found = self._frame(
            select(RUN.c.digest, RUN.c.settings)
            .where(RUN.c.scenario == scenario, RUN.c.record <= self._last)
            .distinct()
        )
        pairs = zip(found["digest"], map(json.loads, found["settings"]), strict=True)
        return {digest: said for digest, said in pairs if said}

    def sparklines(self, n: int) -> pd.DataFrame:
        """Give the contender's last ``n`` medians, at least one, in each cell of the overview.

        Beyond ``STANDING`` and ``version`` these are ``medians`` (a list, oldest first) and
        ``newest`` (start of the last run).
        """
        found = list_frame_lines(self._frame(last_medians(self._last, n)))
        names = self._frame(select(SERIES)).rename(columns={"id": "series"})
        pairs = self._frame(select(PAIR)).rename(columns={"id": "pair"})
        pairs = pairs.replace({"baseline": {"": EXPECTED}})
        whole = found.merge(names, on="series").merge(pairs, on="pair")
        ordered = whole.sort_values([*CELL, "baseline", "contender"], ignore_index=True)
        return ordered[[*CELL, "baseline", "contender", "medians", "newest"]]

    @cached_property  # few compared with the values, and every page wants them
    def _runs(self) -> pd.DataFrame:
        wanted = (
            select(
                RECORD.c.path.label("record"),
                *(plain(RUN.c[name]) for name in _TIMES),
                *(RUN.c[name] for name in _OF_RUN),
                *(SIDE.c[name] for name in _OF_SIDE),
            )
            .join_from(RUN, RECORD, RECORD.c.id == RUN.c.record)
            .join(SIDE, SIDE.c.record == RUN.c.record)
            .where(RUN.c.record <= self._last)
            .order_by(RUN.c.started_at, RECORD.c.path, SIDE.c.side)
        )
        return with_group(self._frame(wanted))

    @cached_property  # counted over all levels, and every page of a scenario wants them
    def _cells(self) -> pd.DataFrame:
        return self._frame(counted_cells(self._last))

    @cached_property
    def _latest(self) -> pd.DataFrame:
        latest = self._as_verdicts(every_verdict(self._last).where(is_latest(self._last)))
        question = [name for name in STANDING if name not in {"metric", "statistic"}]
        newest = latest.groupby(question, observed=True)["started_at"].transform("max")
        return latest.assign(stale=latest["started_at"] < newest)

    def _as_verdicts(self, wanted: Select[Any]) -> pd.DataFrame:
        found = with_group(self._frame(wanted))
        run = ["record", "run", "scenario", "version", "digest", "group", "testbed", "started_at"]
        return found[[*run, "baseline", "contender", "place", "metric", "statistic", *OWN[1:]]]

    def _frame(self, wanted: Select[Any]) -> pd.DataFrame:
        return build_frame(wanted, self._rows(wanted))

    def _rows(
        self, wanted: Select[Any], given: Mapping[str, Any] | None = None
    ) -> Sequence[tuple[Any, ...]]:
        """Query the database; a file of which a part is damaged is made again from the records."""
        try:
            return super()._rows(wanted, given)
        except RulesChangedError:
            raise
        except DatabaseError:
            if self.database.file is None or self._is_anew:
                raise
        newest = self._newest  # that of the statement
        vars(self).update(vars(_bring_up(self.results, Database.temporary())), _is_anew=True)
        newest[:] = self._newest
        return super()._rows(wanted, {**given, "last": newest[0]} if given else None)


def _placed(levels: pd.DataFrame) -> pd.DataFrame:
    """Number the runs of a series in time."""
    position = np.cumsum(np.diff(levels["number"].to_numpy(np.int64), prepend=-1) != 0) - 1
    return levels.assign(position=position)


def _shown(levels: pd.DataFrame) -> pd.DataFrame:
    return levels[[*_OF_POINT, "fixes", "position", "value", "n", "version", "digest"]]


Say: TypeAlias = Callable[[int, int], None]
"""Called with how many of the new records are read, and how many there are."""

BATCH: Final = 64
"""Records of a transaction: as many are lost when a process is killed, some seconds of work."""


def open_index(results: Path, say: Say = lambda *_: None, *, rebuild: bool = False) -> Index:
    """Read and judge the records that are new, and give everything a store holds.

    Several processes may do so at once, and any may be killed. ``say`` is called at the start and
    after each new record. ``rebuild`` reads every record again; a change of the rules needs none.
    """
    return with_database(results, partial(_bring_up, results, say=say, rebuild=rebuild))


def _bring_up(
    results: Path, database: Database, say: Say = lambda *_: None, *, rebuild: bool = False
) -> Index:
    rules = rules_digest()
    # What a copy holds is as new as it was: there is nothing to make again in it.
    again = rebuild and database.kept
    listed, new = find_new(database, results, rules, judged=True, rebuild=again)
    say(0, len(new))
    rows = judged_by_all(new, say)
    while batch := list(islice(rows, BATCH)):
        put_in_place(database, rules, batch)
    return Index(results, database, listed, rules)
