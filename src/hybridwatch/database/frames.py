"""From rows of the database to frames: a whole column at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sqlalchemy import BigInteger, ColumnElement, Double, Integer, Select, type_coerce
from sqlalchemy.types import TypeEngine

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
