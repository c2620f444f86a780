"""Histories from a CSV: ``time,value`` or ``series,time,value``, columns in any order.

Several rows of one series at one time are repeats of one run: their median is the value, and what
they differ by is its spread. Nothing is guessed, dropped or sorted: a row that could mean two
things is an error that names its line.
"""

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from itertools import groupby
from statistics import median, stdev
from typing import Final

from hybridwatch.errors import HistoryError

_SERIES: Final = "series"
_TIME: Final = "time"
_VALUE: Final = "value"
_SHOWN: Final = 40
"""How much of a wrong cell an error message repeats."""


@dataclass(frozen=True, slots=True)
class WrittenSeries:
    """One series as a file tells it.

    Attributes:
        name: From the column ``series``; ``None`` when the file has none.
        labels: Each time as written.
        times: The same as numbers, ascending; of dates the seconds since 1970.
        values: One per time, the median of its repeats.
        spreads: Standard error of each value, ``s / sqrt(repeats)``, with ``s`` from that time's
            own repeats; ``None`` unless every time has at least two.
    """

    name: str | None
    labels: tuple[str, ...]
    times: tuple[float, ...]
    values: tuple[float, ...]
    spreads: tuple[float, ...] | None


def read_histories(lines: Iterable[str], source: str) -> tuple[WrittenSeries, ...]:
    """Read every series of a CSV.

    Args:
        lines: The text, its header first.
        source: What to call it in messages.

    Returns:
        In order of first appearance; rows of different series may alternate.

    Raises:
        HistoryError: In one line: source, line, column, what was found and what was expected.
    """
    try:
        return _read(csv.reader(lines, strict=True), source)
    except csv.Error as error:
        raise HistoryError(f"{source}: not a CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise HistoryError(f"{source}: expected text in UTF-8: {error.reason}") from error


class _Clock(Enum):
    NUMBER = "a number"
    LOCAL = "a date without a time zone"
    ZONED = "a date with a time zone"


@dataclass(slots=True)
class _Growing:
    """A series while its rows come in."""

    rows: list[tuple[float, str, float]] = field(default_factory=list)
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells of one line, and where it stands."""

    source: str
    line: int
    cells: dict[str, str]

    def number(self, column: str, wanted: str = "a finite number") -> float:
        number = _number_in(self.cells[column])
        if number is None:
            raise self.wrong(column, wanted)
        return number

    def time(self) -> tuple[float, _Clock]:
        number = _number_in(self.cells[_TIME])
        if number is not None:
            return number, _Clock.NUMBER
        try:
            moment = datetime.fromisoformat(self.cells[_TIME])
        except ValueError:
            raise self.wrong(_TIME, "a finite number or a date such as 2026-11-21") from None
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC).timestamp(), _Clock.LOCAL
        return moment.timestamp(), _Clock.ZONED

    def wrong(self, column: str, wanted: str) -> HistoryError:
        found = self.cells[column]
        shown = found if len(found) <= _SHOWN else found[:_SHOWN] + "\u2026"
        return HistoryError(
            f"{self.source}: line {self.line}: {column}: expected {wanted}, found {shown!r}"
        )


def _read(rows: Iterator[list[str]], source: str) -> tuple[WrittenSeries, ...]:
    growing: dict[str | None, _Growing] = {}
    first: _Clock | None = None
    for row in _rows(rows, source):
        time, clock = row.time()
        first = first or clock
        if clock is not first:
            raise row.wrong(_TIME, f"{first.value} as in the rows before")
        value = row.number(_VALUE)
        series = growing.setdefault(row.cells.get(_SERIES), _Growing())
        if series.rows and time < series.rows[-1][0]:
            earlier = f"a time not before {series.rows[-1][1]!r} of line {series.line}"
            raise row.wrong(_TIME, f"{earlier} (sort the rows by time)")
        series.rows.append((time, row.cells[_TIME], value))
        series.line = row.line
    if not growing:
        raise HistoryError(f"{source}: expected rows below the header, found none")
    return tuple(_finished(name, series.rows) for name, series in growing.items())


def _rows(rows: Iterator[list[str]], source: str) -> Iterator[_Row]:
    header = [cell.strip() for cell in next(rows, [])]
    for column in (_TIME, _VALUE):
        if column not in header:
            found = ",".join(header)[:_SHOWN]
            raise HistoryError(
                f"{source}: line 1: expected a header with the columns time and value "
                f"(and series where there are several), found {found!r}"
            )
    for column in (_SERIES, _TIME, _VALUE):
        if header.count(column) > 1:
            raise HistoryError(f"{source}: line 1: expected the column {column} once")
    for line, cells in enumerate(rows, start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise HistoryError(
                f"{source}: line {line}: expected {len(header)} cells as in the header, "
                f"found {len(cells)}"
            )
        stripped = (cell.strip() for cell in cells)
        yield _Row(source, line, dict(zip(header, stripped, strict=True)))


def _number_in(text: str) -> float | None:
    if "_" in text:  # Python would read 1_0 as ten; no file means that
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _finished(name: str | None, rows: list[tuple[float, str, float]]) -> WrittenSeries:
    runs = [list(group) for _, group in groupby(rows, key=lambda row: row[0])]
    repeats = [[value for _, _, value in run] for run in runs]
    spreads = None
    if min(map(len, repeats)) > 1:
        spreads = tuple(stdev(values) / math.sqrt(len(values)) for values in repeats)
    return WrittenSeries(
        name=name,
        labels=tuple(run[0][1] for run in runs),
        times=tuple(run[0][0] for run in runs),
        values=tuple(median(values) for values in repeats),
        spreads=spreads,
    )
