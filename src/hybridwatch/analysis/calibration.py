"""How often our own rules are right: figures with interval and promised bound, and their file.

The lab measures them; ``docs/calibration.json`` has them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from scipy import stats

from hybridwatch.errors import ExportError

CONFIDENCE: Final = 0.95


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


def share(name: str, what: str, outcomes: Sequence[bool], bound: Bound | None = None) -> Figure:
    """Compute which share of simulations had an outcome, with Wilson's interval."""
    count, n = sum(outcomes), len(outcomes)
    if not n:
        return unknown_figure(name, what, FigureForm.SHARE, bound, (0.0, 1.0))
    span = stats.binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return Figure(name, what, count / n, float(span.low), float(span.high), n, bound=bound)


def unknown_figure(
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
