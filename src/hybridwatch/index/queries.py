"""The questions that screens ask, each answered from memory.

One number is some twenty bytes here: texts are codes, and the values lie in the order in which
they are asked for (scenario, metric and statistic, then time), so that a series is a slice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from hybridwatch.index.columns import Values
from hybridwatch.index.stamps import Listed, list_stamped
from hybridwatch.index.tables import RECORDS, RUNS, VALUES, VERDICTS, Tables, frame_of

STANDING: Final = ("scenario", "baseline", "contender", "testbed", "metric", "statistic")
"""What makes two verdicts answers to one question."""

CELL: Final = ("scenario", "version", "testbed", "metric", "statistic")
"""What makes numbers a series: only these may be laid beside each other."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric and statistic of one scenario and testbed, over runs in time.

    Attributes:
        points: A row for each trial: ``run``, ``record``, ``started_at``, ``position`` (of the run
            among those of the series, from 0), ``build``, ``release``, ``side``, ``nth`` (among
            the side's, from 0), ``trial`` (its index in the run), ``value`` (base units; for a
            proportion the trial's share of right answers), ``revision``, ``testbed``.
        levels: A row for each side of each run: ``run`` to ``side`` as above, ``value`` (median of
            the points), ``n`` (how many), ``fixes`` (JSON: state by fix).
    """

    points: pd.DataFrame
    levels: pd.DataFrame


class Index:
    """Everything that a store holds, as of one moment. Never changes; frames given out are copies.

    ``listed`` are the records when it was opened; ``kept`` is whether all of it is on disk.
    """

    def __init__(
        self, results: Path, listed: Mapping[str, Listed], tables: Tables, *, kept: bool
    ) -> None:
        self.results = results
        self.kept = kept
        self._listed = listed
        self._records = frame_of(tables[RECORDS])
        self._runs = _in_time(frame_of(tables[RUNS]))
        self._rows = frame_of(tables[VERDICTS])
        self._values = Values(self._runs, tables[VALUES])

    def is_current(self) -> bool:
        """Whether the store still holds the same records; a listing, nothing is read."""
        return list_stamped(self.results) == self._listed

    @property
    def counts(self) -> dict[str, int]:
        """How many ``records`` (of them ``runs`` and ``broken``), ``values`` and ``verdicts``."""
        broken = int((self._records["broken"] != "").sum())
        return {
            "records": len(self._records),
            "runs": len(self._records) - broken,
            "values": self._values.count,
            "verdicts": len(self._rows),
            "broken": broken,
        }

    def runs(self) -> pd.DataFrame:
        """Give every side of every run, oldest first.

        Returns:
            ``record`` (path below the results folder), ``run``, ``side``, ``sides`` (1 or 2),
            ``scenario``, ``version``, ``group`` (first part of the scenario's id), ``testbed``,
            ``started_at``, ``committed_at`` (NaT unless ingested with it), ``build``, ``release``,
            ``accelerator``, ``fixes`` (JSON: state by fix), ``revision`` (of the harness),
            ``source`` (format it was ingested from, else empty), ``failures`` (failed trials of
            the side), ``doubts`` (held against the machine, one a line), ``headline`` (of the
            run's report), ``trouble`` (why it has none).
        """
        return self._runs.copy()

    def broken(self) -> pd.DataFrame:
        """Give the records that cannot be read: ``record`` and ``reason``, oldest first."""
        broken = self._records[self._records["broken"] != ""].sort_values("record")
        return (
            broken[["record", "broken"]].rename(columns={"broken": "reason"}).reset_index(drop=True)
        )

    def verdicts(self) -> pd.DataFrame:
        """Give every comparison of every run of two builds, oldest run first, as reported.

        Returns:
            ``record``, ``run``, ``scenario``, ``version``, ``group``, ``testbed``, ``started_at``,
            ``baseline``, ``contender`` (labels), ``place`` (in the report), ``metric``,
            ``statistic``, ``verdict``, ``effect``, ``low``, ``high`` (its interval),
            ``p_adjusted``, ``p_holm``, ``old``, ``new`` (centers, base units), ``n_old``,
            ``n_new``, ``gate`` (what a gate without a policy does: block, warn, watch), ``doubt``
            (the first), ``doubts`` (how many), ``headline`` (of the report). NaN where a report
            has nothing.
        """
        return self._verdicts.copy()

    def latest_verdicts(self) -> pd.DataFrame:
        """Give the newest answer to each question: scenario, both builds, testbed, metric.

        Returns:
            As ``verdicts``, oldest first, and ``stale``: whether a later run of the same scenario,
            builds and testbed has no verdict on it.
        """
        return self._latest.copy()

    def changed_since(self, time: datetime) -> pd.DataFrame:
        """Give the latest verdicts that say something else than before a moment.

        Args:
            time: Aware; runs that started then or later are news.

        Returns:
            As ``latest_verdicts``, and ``before``: the verdict that held then, empty for a
            comparison that had none.
        """
        old = self._verdicts[self._verdicts["started_at"] < pd.Timestamp(time)]
        before = old.drop_duplicates(list(STANDING), keep="last")
        news = self._latest[self._latest["started_at"] >= pd.Timestamp(time)]
        both = news.merge(
            before[[*STANDING, "verdict"]].rename(columns={"verdict": "before"}),
            on=list(STANDING),
            how="left",
        ).fillna({"before": ""})
        return both[both["verdict"] != both["before"]].reset_index(drop=True)

    def cells(self) -> pd.DataFrame:
        """Give every series there is: the columns of ``CELL``, ``runs`` and ``newest`` (start)."""
        return self._cells.copy()

    def series(
        self, scenario: str, version: int, testbed: str, metric: str, statistic: str
    ) -> Series:
        """Give one history, oldest first; without rows when there is none."""
        cell = (scenario, version, testbed, metric, statistic)
        part = self._values.cells.get(cell, slice(0, 0))
        levels = self._values.levels
        rows, sizes = levels.row[part], levels.count[part]
        records = self._record_of[rows]
        position = np.cumsum(np.diff(records, prepend=-1) != 0) - 1
        of_levels = {"position": position, "value": levels.median[part], "n": sizes}
        first = int(levels.start[part][0]) if len(rows) else 0
        points = slice(first, first + int(sizes.sum()))
        of_points = {
            "position": np.repeat(position, sizes),
            "nth": np.arange(points.stop - first) - np.repeat(levels.start[part] - first, sizes),
            "trial": self._values.trial[points],
            "value": self._values.value[points],
        }
        return Series(
            points=self._laid(np.repeat(rows, sizes), of_points, ("revision", "testbed")),
            levels=self._laid(rows, of_levels, ("fixes",)),
        )

    def sparklines(self, n: int) -> pd.DataFrame:
        """Give the contender's last medians in each cell of the overview.

        Args:
            n: How many runs back, at least 1.

        Returns:
            The columns of ``STANDING``, ``version``, ``medians`` (a list, oldest first) and
            ``newest`` (start of the last run). A run of one build has an empty ``baseline``.
        """
        names = [*CELL, "baseline", "contender", "medians", "row"]
        found = pd.DataFrame(list(self._sparklines(n)), columns=names)
        newest = self._runs["started_at"].array[found.pop("row").to_numpy(np.int64)]
        return found.assign(newest=newest)

    def _sparklines(self, n: int) -> Iterator[tuple[Any, ...]]:
        levels = self._values.levels
        pairs = self._pairs
        for cell, part in self._values.cells.items():
            rows, medians = levels.row[part], levels.median[part]
            codes = self._pair_of[rows]  # -1 for a baseline, which has no line of its own
            for code in dict.fromkeys(codes[codes >= 0].tolist()):
                found = np.flatnonzero(codes == code)[-n:]
                yield (*cell, *pairs[code], medians[found].tolist(), rows[found[-1]])

    def _laid(
        self, rows: np.ndarray[Any, Any], columns: dict[str, Any], more: tuple[str, ...]
    ) -> pd.DataFrame:
        own = ["run", "record", "started_at", "build", "release", "side", *more]
        return self._runs[own].iloc[rows].reset_index(drop=True).assign(**columns)

    @cached_property
    def _cells(self) -> pd.DataFrame:
        levels, runs = self._values.levels, self._runs
        rows = [
            (*cell, len(np.unique(self._record_of[found])), runs["started_at"].iloc[found[-1]])
            for cell, part in self._values.cells.items()
            for found in [levels.row[part]]
        ]
        return pd.DataFrame(rows, columns=[*CELL, "runs", "newest"])

    @cached_property
    def _record_of(self) -> np.ndarray[Any, Any]:
        return pd.factorize(self._runs["record"])[0]

    @cached_property
    def _both_builds(self) -> pd.DataFrame:
        """Baseline and contender of each record; the baseline of a run of one build is empty."""
        last = self._runs.drop_duplicates("record", keep="last").set_index("record")
        first = self._runs.drop_duplicates("record").set_index("record")["build"]
        baseline = first.where(last["sides"] == 2, "")
        return pd.DataFrame({"baseline": baseline, "contender": last["build"]})

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        both = self._both_builds.drop_duplicates()
        return list(zip(both["baseline"], both["contender"], strict=True))

    @cached_property
    def _pair_of(self) -> np.ndarray[Any, Any]:
        """For each side of a run that is its last, which pair of builds the run compares."""
        both = self._both_builds.loc[self._runs["record"]]
        codes = {pair: code for code, pair in enumerate(self._pairs)}
        pairs = zip(both["baseline"], both["contender"], strict=True)
        found = np.array([codes[pair] for pair in pairs], dtype=np.int64)
        return np.where(self._runs["side"] == self._runs["sides"] - 1, found, -1)

    @cached_property
    def _verdicts(self) -> pd.DataFrame:
        shared = ["record", "run", "scenario", "version", "group", "testbed", "started_at"]
        sides = self._runs[self._runs["side"] == 0][[*shared, "headline"]]
        joined = self._rows.merge(sides, on="record").merge(
            self._both_builds.reset_index(), on="record"
        )
        ordered = joined.sort_values(["started_at", "record", "place"], ignore_index=True)
        own = [name for name in self._rows.columns if name != "record"]
        return ordered[[*shared, "baseline", "contender", *own, "headline"]]

    @cached_property
    def _latest(self) -> pd.DataFrame:
        latest = self._verdicts.drop_duplicates(list(STANDING), keep="last", ignore_index=True)
        question = [name for name in STANDING if name not in {"metric", "statistic"}]
        newest = latest.groupby(question, observed=True)["started_at"].transform("max")
        return latest.assign(stale=latest["started_at"] < newest)


def _in_time(runs: pd.DataFrame) -> pd.DataFrame:
    sides = runs.groupby("record")["side"].transform("size").astype("int8")
    whole = runs.assign(sides=sides)
    return whole.sort_values(["started_at", "record", "side"], ignore_index=True)
