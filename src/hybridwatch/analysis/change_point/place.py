"""At which point did the level change, and at which other points may it have?

The score that finds a change counts distances from one middle and clips them, so a change near one
end of a stretch is drawn towards the other end. Here each place is weighed by the likelihood of the
whole stretch instead (Hinkley, Biometrika 57, 1970), and every place is as likely before. The noise
has the density that is seen around both levels (a kernel estimate), mixed with Student's t so that
no outlier decides; what is left of the point before is taken out first (autoregression of order
one); and the size of the change, which is known the less the shorter a level is, is averaged over.
``python -m hybridwatch_lab.calibration`` measures how often the places hold the true one.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point import scan, slope
from hybridwatch.analysis.change_point.noise import (
    Array,
    bounded,
    compute_autoregression,
    compute_medians,
    compute_products,
    compute_spread,
)

CONFIDENCE: Final = 0.95
_REACH: Final = 512
"""Points on either side that are weighed."""
_EDGE: Final = 2
"""Points on either side that make a level."""
_NORMAL: Final = 0.6745
"""Median distance of a normal value from its mean, in standard deviations."""
_CLOSE: Final = 0.451
"""Lower quartile of the distance of two such values: tells how wide one of several modes is."""
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
    """Weigh the places of the one change of level in a stretch.

    ``values`` reach from the change before to the change after. ``unit`` is the standard deviation
    of a point, or of each; only their proportions are used. ``cut`` is a place near the change.
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
    """Count values in standard deviations from the old level; also give the size of the change.

    ``None`` where there is no noise.
    """
    rest, size = _beside(values, cut)
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
        rest, size = _beside(values - tilt * unit * scan.list_times(values.size), cut)
        unit = _deviation(rest)
    unit = max(unit, abs(size) / _LARGEST)
    level = np.where(np.arange(values.size) < cut, 0.0, size)
    low, high = min(0.0, size) / unit - _FAR, max(0.0, size) / unit + _FAR
    return np.clip((rest + level) / unit, low, high), size / unit


def _beside(values: Array, cut: int) -> tuple[Array, float]:
    """Distances from the levels on both sides, and the difference of these."""
    unit = _deviation(np.diff(values)) / math.sqrt(2)
    low, high = slope.level_of(values[:cut], unit), slope.level_of(values[cut:], unit)
    return np.concatenate((values[:cut] - low, values[cut:] - high)), high - low


def _deviation(values: Array) -> float:
    return compute_medians(np.abs(values)) / _NORMAL or float(values.std())


def _masses(scores: Array, size: float, cut: int, weights: Array) -> Array:
    """Say how likely the change is at each point."""
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
    """Estimate the logarithm of the density of what is left without the levels, on a grid."""
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
