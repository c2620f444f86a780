"""Histories from a CSV: ``time,value`` or ``series,digest,time,value,better``, in any order.

Numbers of one series under two digests, which are two definitions of what was measured, are two
series. Several rows of one series at one time are repeats of one run: their median is the value,
and what they differ by is its spread. Nothing is guessed, dropped or sorted: a row that could mean
two things is an error that names its line.

Times are compared exactly. As floats, nanoseconds since 1970 would look like repeats of each other.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from statistics import median, stdev
from typing import Final

from hybridwatch.analysis.change_point.examine import LARGEST, MOST_POINTS
from hybridwatch.errors import HistoryError
from hybridwatch.metrics import Direction

_SERIES: Final = "series"
_DIGEST: Final = "digest"
_TIME: Final = "time"
_VALUE: Final = "value"
_BETTER: Final = "better"
_DIGITS: Final = 8
_SHOWN: Final = 40
"""How much of a wrong cell an error message repeats."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN: Final = 300
"""Digits of a time that is surely a finite number; most are such, and read faster as one."""
_BELOW_MICROSECONDS: Final = re.compile(r"[.,]\d{6}(\d+)")

_Time = tuple[Decimal | int, str]
"""A time that compares exactly: a number, or microseconds and the digits below them."""


@dataclass(frozen=True, slots=True)
class WrittenSeries:
    """One series as a file has it.

    Attributes:
        name: ``None`` without a column ``series``; with the beginning of the digest where a series
            has several.
        labels: Each time as written, strictly ascending.
        values: One per time, the median of its repeats.
        spreads: Standard error of each value, ``s / sqrt(repeats)``, with ``s`` from that time's
            own repeats; ``None`` unless every time has at least two.
        repeats: The values of each time where there are ``spreads``, else none.
    """

    name: str | None
    labels: tuple[str, ...]
    values: tuple[float, ...]
    spreads: tuple[float, ...] | None
    repeats: tuple[tuple[float, ...], ...] = ()
    better: Direction | None = None


def read_histories(lines: Iterable[str], source: str) -> tuple[WrittenSeries, ...]:
    """Read every series of a CSV, whose header comes first, in order of first appearance.

    Nothing is read beyond the line that passes a limit of ``examine``. ``source`` names it in
    messages.
    """
    try:
        return _read(csv.reader(lines, strict=True))
    except csv.Error as error:
        raise HistoryError(f"{source}: not a CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise HistoryError(f"{source}: expected text in UTF-8: {error.reason}") from error
    except HistoryError as error:
        raise HistoryError(f"{source}: {error}") from error


class _Clock(Enum):
    NUMBER = "a number"
    LOCAL = "a date without a time zone"
    ZONED = "a date with a time zone"


@dataclass(slots=True)
class _Growing:
    """A series while its rows come in; most have no repeats, for which a list each costs memory."""

    labels: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    repeats: dict[int, list[float]] = field(default_factory=dict)
    last: _Time = (0, "")
    line: int = 0
    better: Direction | None = None


@dataclass(frozen=True, slots=True)
class _CsvRow:
    line: int
    cells: dict[str, str]

    def value(self) -> float:
        number = _number_in(self.cells[_VALUE])
        if number is None:
            raise self.wrong(_VALUE, "a finite number")
        return number

    def time(self) -> tuple[_Time, _Clock]:
        cell = self.cells[_TIME]
        if cell.isdigit() and cell.isascii() and len(cell) <= _PLAIN:
            return (int(cell), ""), _Clock.NUMBER
        if _number_in(cell) is not None:
            try:
                return (Decimal(cell), ""), _Clock.NUMBER
            except InvalidOperation:  # an exponent of more digits than even Decimal takes
                raise self.wrong(_TIME, "a time") from None
        try:
            moment = datetime.fromisoformat(cell)
        except ValueError:
            raise self.wrong(_TIME, "a finite number or a date such as 2026-11-21") from None
        clock = _Clock.LOCAL if moment.tzinfo is None else _Clock.ZONED
        zoned = moment.replace(tzinfo=UTC) if clock is _Clock.LOCAL else moment
        below = _BELOW_MICROSECONDS.search(cell)  # these digits fromisoformat drops
        digits = "" if below is None else below[1].rstrip("0")
        return ((zoned - _EPOCH) // timedelta(microseconds=1), digits), clock

    def better(self) -> Direction | None:
        cell = self.cells.get(_BETTER)
        try:
            return Direction(cell) if cell else None
        except ValueError:
            raise self.wrong(_BETTER, "lower or higher") from None

    def wrong(self, column: str, wanted: str) -> HistoryError:
        found = self.cells[column]
        shown = found if len(found) <= _SHOWN else found[:_SHOWN] + "\u2026"
        return HistoryError(f"line {self.line}: {column}: expected {wanted}, found {shown!r}")


def _read(rows: Iterator[list[str]]) -> tuple[WrittenSeries, ...]:
    growing: dict[tuple[str | None, str], _Growing] = {}
    first: _Clock | None = None
    for row in _rows(rows):
        time, clock = row.time()
        first = first or clock
        if clock is not first:
            raise row.wrong(_TIME, f"{first.value} as in the rows before")
        value = row.value()
        if abs(value) > LARGEST:
            raise row.wrong(_VALUE, f"a number from {-LARGEST:g} to {LARGEST:g}")
        named = row.cells.get(_SERIES), row.cells.get(_DIGEST, "")
        series = growing.setdefault(named, _Growing())
        _add(row, series, time, value)
        if len(series.labels) > MOST_POINTS:
            raise HistoryError(
                f"line {row.line}: expected at most {MOST_POINTS:,} times a series, "
                "found more: give a shorter time, or one point a day"
            )
    if not growing:
        raise HistoryError("expected rows below the header, found none")
    return tuple(_finished(name, series) for name, series in _named(growing))


def _named(
    growing: Mapping[tuple[str | None, str], _Growing],
) -> Iterator[tuple[str | None, _Growing]]:
    """Name each series as the file does; with its digest where the name is not enough."""
    many = Counter(name for name, _ in growing)
    for (name, digest), series in growing.items():
        alone = many[name] == 1
        yield name if alone else f"{name or _VALUE} ({_DIGEST} {digest[:_DIGITS]})", series


def _add(row: _CsvRow, series: _Growing, time: _Time, value: float) -> None:
    better = row.better()
    if series.labels and better is not series.better:
        before = series.better.value if series.better else ""
        raise row.wrong(_BETTER, f"{before!r} as in line {series.line} of this series")
    series.better = better
    if series.labels and time < series.last:
        earlier = f"a time not before {series.labels[-1]!r} of line {series.line}"
        raise row.wrong(_TIME, f"{earlier} (sort the rows by time)")
    if series.labels and time == series.last:
        place = len(series.values) - 1
        series.repeats.setdefault(place, [series.values[place]]).append(value)
    else:
        series.labels.append(row.cells[_TIME])
        series.values.append(value)
    series.last, series.line = time, row.line


def _rows(rows: Iterator[list[str]]) -> Iterator[_CsvRow]:
    header = [cell.strip() for cell in next(rows, [])]
    for column in (_TIME, _VALUE):
        if column not in header:
            found = ",".join(header)[:_SHOWN]
            raise HistoryError(
                "line 1: expected a header with the columns time and value "
                f"(and series where there are several), found {found!r}"
            )
    places = {
        column: header.index(column)
        for column in (_SERIES, _DIGEST, _TIME, _VALUE, _BETTER)
        if column in header
    }
    for column in places:
        if header.count(column) > 1:
            raise HistoryError(f"line 1: expected the column {column} once")
    for line, cells in enumerate(rows, start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            wanted = f"{len(header)} cells as in the header"
            raise HistoryError(f"line {line}: expected {wanted}, found {len(cells)}")
        yield _CsvRow(line, {column: cells[place].strip() for column, place in places.items()})


def _number_in(text: str) -> float | None:
    if "_" in text:  # Python would read 1_0 as ten; no file means that
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _finished(name: str | None, series: _Growing) -> WrittenSeries:
    spreads = None
    repeats: tuple[tuple[float, ...], ...] = ()
    if len(series.repeats) == len(series.values):
        repeats = tuple(tuple(series.repeats[place]) for place in range(len(series.values)))
        spreads = tuple(stdev(values) / math.sqrt(len(values)) for values in repeats)
    for place, some in series.repeats.items():
        series.values[place] = median(some)
    return WrittenSeries(
        name=name,
        labels=tuple(series.labels),
        values=tuple(series.values),
        spreads=spreads,
        repeats=repeats,
        better=series.better,
    )
