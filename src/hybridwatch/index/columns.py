"""One number per trial, laid out so that a series is a slice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from hybridwatch.index.tables import coded

Cell: TypeAlias = tuple[str, int, str, str, str]
"""Scenario, version, testbed, metric, statistic."""

_Whole: TypeAlias = npt.NDArray[np.int64]

_SIDES: Final = 2


@dataclass(frozen=True, slots=True)
class Levels:
    """A side of a run in a cell: which values are its, and their median.

    Attributes:
        row: Of the side among the runs.
        start: Where its values begin.
        count: How many there are.
        median: Of them; the mean of the middle two where they are even.
    """

    row: npt.NDArray[np.int32]
    start: _Whole
    count: _Whole
    median: npt.NDArray[np.float64]


class Values:
    """Every value, ordered by cell, then by run in time and side, then as measured.

    Args:
        runs: One row for each side of each run, oldest first.
        table: The values.
    """

    def __init__(self, runs: pd.DataFrame, table: pa.Table) -> None:
        self.count = table.num_rows
        key, spans = _keys(runs, table)
        order = np.argsort(key, kind="stable")
        key = key[order]
        self.trial = table["trial"].to_numpy()[order]
        self.value = table["value"].to_numpy()[order]
        self.levels = _levels(key, self.value, len(runs))
        self.cells = _cells(runs, key[self.levels.start] // max(len(runs), 1), spans)


@dataclass(frozen=True, slots=True)
class _Spans:
    """The texts that a key's digits stand for."""

    group: npt.NDArray[np.int64]
    metrics: list[str]
    statistics: list[str]


def _keys(runs: pd.DataFrame, table: pa.Table) -> tuple[_Whole, _Spans]:
    """Give each value a number by which sorting is the order above."""
    records, names = coded(table, "record")
    # Dictionaries are in order of appearance, which must not decide over the order of series.
    metrics, metric_names = _sorted(*coded(table, "metric"))
    statistics, statistic_names = _sorted(*coded(table, "statistic"))
    group = runs.groupby(["scenario", "version", "testbed"]).ngroup().to_numpy().astype(np.int64)
    row = _rows(runs, names)[records, table["side"].to_numpy()]
    key = group[row] * len(metric_names) + metrics
    key = key * len(statistic_names) + statistics
    return key * len(runs) + row, _Spans(group, metric_names, statistic_names)


def _sorted(codes: npt.NDArray[np.int32], texts: list[str]) -> tuple[_Whole, list[str]]:
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(texts), np.int64)
    place[order] = np.arange(len(texts))
    return place[codes], [texts[at] for at in order]


def _rows(runs: pd.DataFrame, names: list[str]) -> _Whole:
    """For each record's code and side, the row among the runs."""
    code = pd.Index(names).get_indexer(pd.Index(runs["record"]))
    found = np.full((len(names), _SIDES), -1, np.int64)
    there = code >= 0  # a run may have no value at all
    found[code[there], runs["side"].to_numpy()[there]] = np.flatnonzero(there)
    return found


def _levels(key: _Whole, value: npt.NDArray[np.float64], runs: int) -> Levels:
    start = np.flatnonzero(np.diff(key, prepend=-1))
    count = np.diff(start, append=len(key))
    median = np.empty(len(start))
    for n in np.unique(count).tolist():  # few, and rows of one length are sorted at once
        of_n = count == n
        ranked = np.sort(value[start[of_n][:, None] + np.arange(n)], axis=1)
        median[of_n] = (ranked[:, (n - 1) // 2] + ranked[:, n // 2]) / 2
    row = (key[start] % max(runs, 1)).astype(np.int32)
    return Levels(row, start, count, median)


def _cells(runs: pd.DataFrame, keys: _Whole, spans: _Spans) -> Mapping[Cell, slice]:
    """Where each cell's levels lie."""
    of_group = dict(zip(spans.group.tolist(), _named(runs), strict=True))
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = np.append(first, len(keys))[1:].tolist()
    found: dict[Cell, slice] = {}
    for key, start, end in zip(keys[first].tolist(), first.tolist(), ends, strict=True):
        upper, statistic = divmod(key, len(spans.statistics))
        group, metric = divmod(upper, len(spans.metrics))
        scenario, version, testbed = of_group[group]
        cell = scenario, version, testbed, spans.metrics[metric], spans.statistics[statistic]
        found[cell] = slice(start, end)
    return found


def _named(runs: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(zip(runs["scenario"], runs["version"], runs["testbed"], strict=True))
