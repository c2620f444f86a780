"""Measured figures with interval and promised bound, and reading ``docs/calibration.json``."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import stats

from hybridwatch.analysis import paired_proportion
from hybridwatch.analysis.paired_proportion import Pairs
from hybridwatch.errors import ExportError

CONFIDENCE: Final = 0.95
_TAIL: Final = (1 - CONFIDENCE) / 2
_THOUSAND: Final = 1000


class FigureForm(Enum):
    """How a figure is written."""

    SHARE = "share"
    """A fraction of simulations; written in per cent."""
    NUMBER = "number"


class FigurePromise(Enum):
    """Where a figure must stay."""

    MOST = "most"
    """At or below a limit."""
    LEAST = "least"
    """At or above it."""
    LEVEL = "level"
    """At or below the level of an exact test, which the test spends whole: half of all estimates
    then lie beyond it, so only an interval that does breaks the promise."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A promise about a figure: ``limit`` is the last value that keeps it."""

    limit: float
    promise: FigurePromise

    @property
    def at_most(self) -> bool:
        """Whether the figure must stay at or below the limit, else at or above it."""
        return self.promise is not FigurePromise.LEAST

    def holds(self, value: float) -> bool:
        """Say whether a value keeps the promise."""
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True, slots=True)
class Figure:
    """One result of the calibration.

    Attributes:
        id: Stable name, dotted: ``report.any_red.blocks_7``.
        what: What was counted, for a person.
        value: A fraction for shares; ``low`` and ``high`` are its 95 % interval.
        bound: ``None`` for figures that only inform.
    """

    id: str
    what: str
    value: float
    low: float
    high: float
    simulations: int
    form: FigureForm = FigureForm.SHARE
    bound: Bound | None = None

    @property
    def met(self) -> bool | None:
        """Whether the estimate keeps the bound; ``None`` without one."""
        if self.bound is None:
            return None
        if self.bound.promise is FigurePromise.LEVEL:
            return not self.refuted
        return self.bound.holds(self.value)

    @property
    def refuted(self) -> bool:
        """Whether even the kinder end of the interval breaks it, by which a short run is judged."""
        if self.bound is None:
            return False
        return not self.bound.holds(self.low if self.bound.at_most else self.high)


def percent(fraction: float) -> str:
    """Write a fraction in per cent, as the documents do."""
    return f"{100 * fraction:g} %"


def part(outcomes: Collection[bool]) -> str:
    """Write the share of outcomes that are so, for a cell of a table."""
    return percent(round(sum(outcomes) / len(outcomes), 3)) if outcomes else "-"


def at_most(limit: float) -> Bound:
    """Promise that a figure is no larger."""
    return Bound(limit, FigurePromise.MOST)


def at_level(limit: float) -> Bound:
    """Promise that a share is no larger than the level of the exact test behind it."""
    return Bound(limit, FigurePromise.LEVEL)


def at_least(limit: float) -> Bound:
    """Promise that a figure is no smaller."""
    return Bound(limit, FigurePromise.LEAST)


def share(name: str, what: str, outcomes: Sequence[bool], bound: Bound | None = None) -> Figure:
    """Compute which share of simulations had an outcome, with Wilson's interval."""
    count, n = sum(outcomes), len(outcomes)
    if not n:
        return _unknown(name, what, FigureForm.SHARE, bound, (0.0, 1.0))
    span = stats.binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return Figure(name, what, count / n, float(span.low), float(span.high), n, bound=bound)


def gain(
    name: str, what: str, hits: Sequence[bool], lucks: Sequence[bool], bound: Bound | None = None
) -> Figure:
    """Compute how much oftener a change is found than luck: Tango's interval for paired shares."""
    pairs = Pairs(
        n=len(hits),
        lost=sum(luck and not hit for hit, luck in zip(hits, lucks, strict=True)),
        won=sum(hit and not luck for hit, luck in zip(hits, lucks, strict=True)),
    )
    span = paired_proportion.difference_interval(pairs)
    return Figure(name, what, pairs.difference, span.low, span.high, pairs.n, bound=bound)


def rate(
    name: str, what: str, events: int, points: int, simulations: int, bound: Bound | None = None
) -> Figure:
    """Compute how many events there were per 1000 points, with the exact Poisson interval."""
    scale = _THOUSAND / points
    low = float(stats.chi2.ppf(_TAIL, 2 * events)) / 2 if events else 0.0
    high = float(stats.chi2.ppf(1 - _TAIL, 2 * events + 2)) / 2
    return Figure(
        name, what, events * scale, low * scale, high * scale, simulations, FigureForm.NUMBER, bound
    )


def median(name: str, what: str, values: Sequence[float], bound: Bound | None = None) -> Figure:
    """Compute the median, with the interval that order statistics give without assumptions."""
    n = len(values)
    if not n:
        return _unknown(name, what, FigureForm.NUMBER, bound, (0.0, np.inf))
    ordered = np.sort(np.asarray(values, dtype=float))
    rank = int(stats.binom.ppf(_TAIL, n, 0.5))
    low, high = ordered[max(0, rank - 1)], ordered[min(n - 1, n - rank)]
    middle = float(np.median(ordered))
    return Figure(name, what, middle, float(low), float(high), n, FigureForm.NUMBER, bound)


def mean(name: str, what: str, values: Sequence[float], bound: Bound | None = None) -> Figure:
    """Compute the mean, with the normal interval; for many values."""
    array = np.asarray(values, dtype=float)
    half = float(stats.norm.ppf(1 - _TAIL) * stats.sem(array)) if len(array) > 1 else np.inf
    middle = float(np.mean(array))
    return Figure(
        name, what, middle, middle - half, middle + half, len(array), FigureForm.NUMBER, bound
    )


def _unknown(
    name: str, what: str, form: FigureForm, bound: Bound | None, span: tuple[float, float]
) -> Figure:
    """Nothing was counted: the bound is not met, and nothing else is claimed."""
    worst = span[1] if bound is None or bound.at_most else span[0]
    return Figure(name, what, worst, *span, 0, form, bound)


_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """How often our rules are right: what made it, and figures by the title of a question."""

    command: str
    sections: tuple[tuple[str, tuple[Figure, ...]], ...]

    @property
    def promised(self) -> tuple[Figure, ...]:
        """The figures that have a bound."""
        return tuple(f for _, figures in self.sections for f in figures if f.bound is not None)


def read_calibration(path: Path) -> Calibration | None:
    """Read what was measured of our own rules; ``None`` without a file, else an ``ExportError``."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: expected a calibration as JSON: {error}") from None
    try:
        if document["schema_version"] != _SCHEMA:
            raise ExportError(
                f"{path}: schema version: expected {_SCHEMA}, found {document['schema_version']!r}"
            )
        sections = tuple(
            (str(section["title"]), tuple(map(_figure, section["figures"])))
            for section in document["sections"]
        )
        return Calibration(str(document["command"]), sections)
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{path}: no calibration: {type(error).__name__}: {error}") from None


def _figure(entry: Mapping[str, Any]) -> Figure:
    limit = entry["bound"]
    return Figure(
        id=str(entry["id"]),
        what=str(entry["what"]),
        value=_number(entry["value"]),
        low=_number(entry["low"]),
        high=_number(entry["high"]),
        simulations=int(entry["simulations"]),
        form=FigureForm(entry["form"]),
        bound=None if limit is None else Bound(float(limit), FigurePromise(entry["bound_is"])),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)  # null: it could not be measured
