"""At which point did the level change, and at which other points may it have?

The score that finds a change counts distances from one middle and clips them, so a change near one
end of a stretch is drawn towards the other end. Here each place is weighed by the likelihood of the
whole stretch instead (Hinkley, Biometrika 57, 1970), and every place is as likely before. The noise
has the density that is seen around both levels (a kernel estimate), mixed with Student's t so that
no outlier decides; what is left of the point before is taken out first (autoregression of order
one); and the size of the change, which is known the less the shorter a level is, is averaged over.

A drift that starts and ends within a series looks like one step or several in the same direction.
Both are fitted robustly: the steps at their places, and a level that stays, moves along a straight
line and stays again, over a grid of where it starts and ends (as a broken line is fitted, Hudson,
JASA 61, 1966). ``python -m hybridwatch_lab.calibration`` measures how often one passes for the
other, and how often the places hold the true one.

An alert wants to know since when a run is bad on its first morning, with one run on the new level.
So in ``find_onset`` the noise is taken from what came before and from the error of each run. Every
place of a step and a grid of drifts, begun long enough ago, are fitted by least squares and weighed
by their likelihoods, with clipped distances; a drift is believed less beforehand.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.change_point import scan
from hybridwatch.analysis.change_point.noise import (
    CLIP,
    Array,
    bounded,
    compute_autoregression,
    compute_medians,
    compute_noise,
    compute_products,
    compute_spread,
)
from hybridwatch.analysis.change_point.segmentation import build_segment

CONFIDENCE: Final = 0.95
_REACH: Final = 512
"""Points on either side that are weighed."""
_EDGE: Final = 2
"""Points on either side that make a level."""
_NORMAL: Final = 0.6745
"""Median distance of a normal value from its mean, in standard deviations."""
_CLOSE: Final = 0.451
"""Lower quartile of the distance of two such values: the width of one of several modes."""
_FAR: Final = 8.0
"""Standard deviations beyond the levels where values end."""
_LARGEST: Final = 40.0
"""Standard deviations between levels; more leaves no doubt about the place either."""
_WIDTH: Final = 0.6
"""Of the kernel, for 50 points, in standard deviations of one mode."""
_PRIOR: Final = 5
"""Points for which Student's t stands in the density."""
_DEGREES: Final = 3
_STUDENT: Final = 0.3675
"""Its density in the middle."""
CERTAIN: Final = 1.15
"""By which logarithms of the likelihood are divided: the density is an estimate."""
_SIZES: Final = np.linspace(-2, 2, 9)
"""Sizes of the change that are averaged over, in standard errors from the likeliest."""
_CELLS: Final = 2048
_STEEP: Final = 4.0
"""Standard errors of a slope on both sides that is taken out."""


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """First point of a new level: the likeliest, and the range that holds it with 95 %."""

    index: int
    first: int
    last: int


def place_of(values: Array, unit: float | Array, cut: int) -> ChangePlace:
    """Weigh the places of the one change of level in a stretch, which is near ``cut``.

    ``values`` reach from the change before to the change after. ``unit`` is the standard deviation
    of a point, or of each; only their proportions are used.
    """
    start, end = max(cut - _REACH, 0), min(cut + _REACH, values.size)
    near, at = values[start:end], cut - start
    levelled = _levelled(near, at)
    if levelled is None:
        return ChangePlace(cut, cut, cut)
    weights = np.ones(near.size)
    if isinstance(unit, np.ndarray):
        own = unit[start:end]
        weights = np.minimum(1.0, (compute_medians(own) / own) ** 2)
    return shortest(_masses(*levelled, at, weights), start)


def _levelled(values: Array, cut: int) -> tuple[Array, float] | None:
    """Give values in deviations from the old level, and the size; ``None`` without noise."""
    rest, size = _distances(values, cut)
    unit = _deviation(rest)
    if unit == 0:
        return None
    time = scan.list_times(values.size).copy()
    for side in (slice(0, cut), slice(cut, None)):
        time[side] -= time[side].mean()
    energy = compute_products(time, time)
    scores = bounded(rest / unit, 3.0)
    tilt = compute_products(time, scores) / energy
    if abs(tilt) * math.sqrt(energy) > _STEEP * compute_spread(scores, (cut,), 0.0).inflation:
        rest, size = _distances(values - tilt * unit * scan.list_times(values.size), cut)
        unit = _deviation(rest)
    unit = max(unit, abs(size) / _LARGEST)
    level = np.where(np.arange(values.size) < cut, 0.0, size)
    low, high = min(0.0, size) / unit - _FAR, max(0.0, size) / unit + _FAR
    return np.clip((rest + level) / unit, low, high), size / unit


def _distances(values: Array, cut: int) -> tuple[Array, float]:
    unit = _deviation(np.diff(values)) / math.sqrt(2)
    low, high = scan.level_of(values[:cut], unit), scan.level_of(values[cut:], unit)
    return np.concatenate((values[:cut] - low, values[cut:] - high)), high - low


def _deviation(values: Array) -> float:
    return compute_medians(np.abs(values)) / _NORMAL or float(values.std())


def _masses(scores: Array, size: float, cut: int, weights: Array) -> Array:
    n = scores.size
    rest = scores - np.where(np.arange(n) < cut, 0.0, size)
    alike = compute_autoregression(bounded(rest, 3.0))
    shocks = scores.copy()
    shocks[1:] -= alike * scores[:-1]
    shocks[0] *= 1 - alike
    rest[1:] -= alike * rest[:-1].copy()
    grid, density = _density(rest, scores.min(), scores.max(), abs(size))
    error = _deviation(rest) / (1 - alike) * math.sqrt(1 / cut + 1 / (n - cut))
    sizes = (size + error * _SIZES)[:, None]
    before = np.interp(shocks, grid, density)
    at = weights * (np.interp(shocks - sizes, grid, density) - before)
    after = weights * (np.interp(shocks - (1 - alike) * sizes, grid, density) - before)
    behind = np.cumsum(after[:, ::-1], axis=1)[:, ::-1] - after
    support = (at + behind)[:, _EDGE : n - _EDGE + 1] / CERTAIN
    masses = np.zeros(n)
    masses[_EDGE : n - _EDGE + 1] = np.exp(support - support.max()).sum(axis=0)
    shares: Array = masses / masses.sum()
    return shares


def _density(rest: Array, low: float, high: float, size: float) -> tuple[Array, Array]:
    n, unit = rest.size, _deviation(rest)
    steps = np.abs(np.diff(rest))
    close = float(np.partition(steps, steps.size // 4)[steps.size // 4]) / _CLOSE
    reach = 2 * size + _FAR
    grid = np.linspace(low - reach, high + reach, _CELLS)
    cell = grid[1] - grid[0]
    width = max(_WIDTH * (min(close, unit) or unit) * (n / 50) ** -0.2, 2 * cell)
    counts, _ = np.histogram(rest, bins=_CELLS, range=(grid[0] - cell / 2, grid[-1] + cell / 2))
    kernel_at = cell * np.arange(-int(4 * width / cell), int(4 * width / cell) + 1)
    kernel = np.exp(-0.5 * (kernel_at / width) ** 2)
    seen = np.convolve(counts, kernel / (kernel.sum() * cell * n), "same")
    tails = (1 + (grid / unit) ** 2 / _DEGREES) ** (-(_DEGREES + 1) / 2) * _STUDENT / unit
    share = _PRIOR / (n + _PRIOR)
    return grid, np.log((1 - share) * seen + share * tails)


def shortest(masses: Array, start: int) -> ChangePlace:
    """Widen from the likeliest place to the likelier side until enough is held."""
    index = first = last = int(masses.argmax())
    held = masses[index]
    padded = np.concatenate((masses, [0.0]))  # also what is before the first
    while held < CONFIDENCE:
        if padded[first - 1] >= padded[last + 1]:
            first -= 1
            held += masses[first]
        else:
            last += 1
            held += masses[last]
    return ChangePlace(start + index, start + first, start + last)


SHORTEST: Final = 12
"""Points of a drift; a shorter one is a step in the search for its cause."""
LONGEST: Final = 1024
"""Points of a stretch that is looked at."""
_DRIFT_PENALTY: Final = 7.0
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
    """A level that moves from ``start`` (95 %: ``first`` to ``last``) to ``end``, by ``total``."""

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

    ``values`` reach from the change before the steps, of one direction, to the change after them;
    ``unit`` is the standard deviation of a point. ``cuts`` has the first point of each new level.
    """
    if values.size < SHORTEST + 4 or values.size > LONGEST or unit == 0:
        return None
    levels = np.empty_like(values)
    for start, end in pairwise((0, *cuts, values.size)):
        levels[start:end] = scan.level_of(values[start:end], unit)
    misfit = float(np.minimum(((values - levels) / unit) ** 2, CLIP**2).sum())
    found, least, inflation = _best(values, unit, levels.min(), levels.max())
    penalty = _DRIFT_PENALTY - _EVERY_STEP * (len(cuts) - 1)
    return found if misfit - least > penalty * inflation**2 else None


def _best(values: Array, unit: float, low: float, high: float) -> tuple[Ramp, float, float]:
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
    places, at = np.unique(starts, return_inverse=True)
    shares = np.cumsum(np.bincount(at, masses))
    rest = (1 - CONFIDENCE) / 2
    low, high = np.searchsorted(shares, (rest, 1 - rest))
    return int(places[max(low - 1, 0)]), int(places[min(high + 1, places.size - 1)])


def _fits(values: Array, unit: float) -> _Fits:
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


FEWEST: Final = 5
"""Fewest runs before the bad one that give a level and its noise."""
_CLIP: Final = 5.0
"""Standard deviations of a run that is off for reasons of its own."""
_DRIFTS: Final = 0.2
"""How likely a drift is beforehand."""
_MOVED: Final = 6
"""Runs for which a drift has to last until the bad one: what is faster is a step in the search for
its cause."""
_LEAST: Final = 1e-9


def find_onset(values: Array, errors: Array, bad: int) -> ChangePlace | None:
    """Find the runs one of which, at ``bad`` at the latest, is the first bad one with 95 %.

    ``values`` says how bad each run is, oldest first, with the standard error of each; ``FEWEST``
    runs or more come before the bad one.

    ``None`` where a drift is as likely as 5 %: then no few runs hold the cause so surely.
    """
    whole = build_segment(values, errors, 0, values.size, compute_noise(values))
    unit = np.maximum(whole.unit, _LEAST) * np.ones(values.size)
    unit[bad] = min(unit[bad], np.median(unit))  # its own error counted when it was judged
    way, at = math.copysign(1.0, values[bad]), np.arange(values.size)
    last = values.size - 1
    pairs = [
        (start, end)
        for start in range(bad - _MOVED + 1)
        for end in {*range(start + SHORTEST, last), last}
    ]
    steps = (at >= np.arange(1, bad + 1)[:, None]).astype(np.float64)
    ramps = find_shape(values.size, *np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
    misfits = _misfits(way * values, unit, np.concatenate((steps, ramps)))
    chances = np.exp((misfits.min() - misfits) / 2 / CERTAIN)
    by_step, by_drift = chances[:bad], chances[bad:]
    drifts = _DRIFTS * float(by_drift.mean()) if pairs else 0.0
    if drifts > (1 - CONFIDENCE) * (drifts + (1 - _DRIFTS) * float(by_step.mean())):
        return None
    return shortest(by_step / by_step.sum(), 1)


def _misfits(values: Array, unit: Array, shapes: Array) -> Array:
    """Fit a level plus what each shape adds to it, nothing below 0, and say how badly it fits."""
    weights = 1 / unit**2 / np.sum(1 / unit**2)
    level = values - weights @ values
    shapes = shapes - (shapes @ weights)[:, None]
    sizes = np.maximum((shapes * weights) @ level / (shapes**2 @ weights), 0.0)
    away = (level - sizes[:, None] * shapes) / unit
    return np.asarray(np.minimum(away**2, _CLIP**2).sum(axis=1))
