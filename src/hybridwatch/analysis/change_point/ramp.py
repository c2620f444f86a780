"""Did the level change at once, or did it drift from one level to another?

A drift that starts and ends within a series looks like one step or several in the same direction.
Both are fitted robustly: the steps at their places, and a level that stays, moves along a straight
line and stays again, over a grid of where it starts and ends (as a broken line is fitted, Hudson,
JASA 61, 1966). ``python -m hybridwatch_lab.calibration`` measures how often one passes for
the other.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.change_point import place, slope
from hybridwatch.analysis.change_point.noise import CLIP, Array, bounded, compute_spread

SHORTEST: Final = 12
"""Points of a drift; a shorter one is a step in the search for its cause."""
LONGEST: Final = 1024
"""Points of a stretch that is looked at."""
_HANDICAP: Final = 7.0
"""By how many squared standard deviations a drift must fit better than one step."""
_EVERY_STEP: Final = 2.0
"""Less of them for every other step: its place and size were free to choose."""
_GOES_ON: Final = math.exp(-3.84 / 2)
"""Likelihood, over that of the likeliest end, from which on the last point is believed to be the
end: what is not known to have stopped goes on."""
_GRID: Final = 32
"""Starts, and as many ends, that are tried."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A level that moves.

    Attributes:
        start: First point that has moved, the likeliest.
        first: Earliest point of the range that holds ``start`` with 95 %.
        last: Latest point of it.
        end: Point at which it stands still again, or the last one.
        total: How far it moves.
    """

    start: int
    first: int
    last: int
    end: int
    total: float


@dataclass(frozen=True, slots=True)
class _Fits:
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    totals: Array
    misfits: Array


def ramp_instead(values: Array, unit: float, cuts: tuple[int, ...]) -> Ramp | None:
    """Find the drift that explains a stretch clearly better than its steps do, if one does.

    ``values`` reach from the change before the steps to the change after them; ``unit`` is the
    standard deviation of a point. ``cuts`` has the first point of each new level; all steps have
    the same direction.
    """
    if values.size < SHORTEST + 4 or values.size > LONGEST or unit == 0:
        return None
    levels = np.empty_like(values)
    for start, end in pairwise((0, *cuts, values.size)):
        levels[start:end] = slope.level_of(values[start:end], unit)
    misfit = float(np.minimum(((values - levels) / unit) ** 2, CLIP**2).sum())
    found, least, inflation = _best(values, unit, levels.min(), levels.max())
    handicap = _HANDICAP - _EVERY_STEP * (len(cuts) - 1)
    return found if misfit - least > handicap * inflation**2 else None


def _best(values: Array, unit: float, low: float, high: float) -> tuple[Ramp, float, float]:
    """The likeliest drift, how badly it fits, and how much likeness of neighbours widens sums."""
    kept = np.clip(values, low - CLIP * unit, high + CLIP * unit)
    fits = _fits(kept, unit)
    best = int(fits.misfits.argmin())
    start, end, total = int(fits.starts[best]), int(fits.ends[best]), float(fits.totals[best])
    rest = kept - total * find_shape(values.size, fits.starts[[best]], fits.ends[[best]])[0]
    scores = bounded((rest - rest.mean()) / unit, CLIP)
    inflation = compute_spread(scores, (), 1.0).inflation
    least = float(fits.misfits[best])
    chances = np.exp((least - fits.misfits) / 2 / inflation**2)
    first, last = _find_range(fits.starts, chances / chances.sum())
    if chances[fits.ends == values.size - 1].max() > _GOES_ON:
        end = values.size - 1
        there = np.where(fits.ends == end, fits.misfits, np.inf)
        best = int(there.argmin())
        start, total = int(fits.starts[best]), float(fits.totals[best])
    # The first point that has moved is the one after the last that has not.
    return Ramp(start + 1, first + 1, last + 1, end, total), least, inflation


def _find_range(starts: npt.NDArray[np.int64], masses: Array) -> tuple[int, int]:
    """Give the range of starts that holds the true one, to the next of the grid on either side."""
    places, at = np.unique(starts, return_inverse=True)
    shares = np.cumsum(np.bincount(at, masses))
    rest = (1 - place.CONFIDENCE) / 2
    low, high = np.searchsorted(shares, (rest, 1 - rest))
    return int(places[max(low - 1, 0)]), int(places[min(high + 1, places.size - 1)])


def _fits(values: Array, unit: float) -> _Fits:
    """Fit a drift between every start and every end of a grid, by least squares."""
    last = values.size - 1
    shortest = min(SHORTEST, last - 1)
    count = min(_GRID, last - shortest + 1)
    starts = np.unique(np.linspace(0, last - shortest, count).astype(np.int64))
    ends = np.unique(np.linspace(shortest, last, count).astype(np.int64))
    far = ends - starts[:, None] >= shortest
    first, second = np.nonzero(far)
    begins, stops = starts[first], ends[second]
    shapes = find_shape(values.size, begins, stops)
    shapes -= shapes.mean(axis=1, keepdims=True)
    level = (values - values.mean()) / unit
    totals = shapes @ level / np.einsum("ij,ij->i", shapes, shapes)
    # In place: these are half a million numbers for 1,000 points.
    shapes *= totals[:, None]
    away = np.subtract(level, shapes, out=shapes)
    np.minimum(np.square(away, out=away), CLIP**2, out=away)
    return _Fits(begins, stops, totals * unit, away.sum(axis=1))


def find_shape(n: int, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Array:
    """From 0 at each start to 1 at its end, a row for each."""
    shape: Array = (np.arange(n) - starts[:, None]) / (ends - starts)[:, None]
    return np.clip(shape, 0.0, 1.0, out=shape)
