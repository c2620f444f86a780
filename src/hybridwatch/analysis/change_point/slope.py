"""Is it a step, or does the level wander along a straight line?

Both explain three quarters of the other one's energy, so a test of one alone always finds the
other. The two are fitted robustly and the better one is taken.
"""

import math
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point import scan
from hybridwatch.analysis.change_point.noise import (
    CLIP,
    Array,
    bounded,
    compute_means,
    compute_medians,
)

FEWEST: Final = 12
"""Points that tell a line from a step."""

_HANDICAP: Final = 5.0
"""By which a step must fit better: it had its place to choose."""
_INFLUENCE: Final = 2.0
"""Standard deviations. One round from a robust start is nearly as sharp as many (Bickel 1975)."""


def level_of(values: Array, unit: float | Array) -> float:
    """Fit a level by bounded influence (Huber 1964), starting from the median."""
    level = compute_medians(values)
    return level + compute_means(bounded(values - level, _INFLUENCE * unit))


def line_of(values: Array, unit: float | Array) -> Array:
    """Fit a straight line by bounded influence, starting from the medians of the outer thirds."""
    n = values.size
    third, time = n // 3, scan.list_times(n)
    slope = (compute_medians(values[n - third :]) - compute_medians(values[:third])) / (n - third)
    line = slope * time
    line += compute_medians(values - line)
    away = bounded(values - line, _INFLUENCE * unit)
    mean = compute_means(away)
    line += mean + time * scan.compute_slope(away - mean)
    return line


def compute_tilt(scores: Array) -> float:
    """Say how clearly scores rise or fall, in standard deviations for independent noise."""
    n = scores.size
    level = scores - compute_means(scores)
    return scan.compute_slope(level) * math.sqrt(n * (n**2 - 1) / 12)


def is_line(values: Array, cut: int, unit: float | Array, inflation: float) -> Array | None:
    """Say whether a line fits a stretch about as well as a step does.

    The step would be at ``cut``. ``unit`` is the standard deviation of a point, or of each;
    ``inflation`` is that of sums of noise, for neighbours that are alike.

    Gives the line at every point; ``None`` where the step is better.
    """
    line = line_of(values, unit)
    step = np.empty_like(values)
    for side in (slice(0, cut), slice(cut, None)):
        step[side] = level_of(values[side], unit[side] if isinstance(unit, np.ndarray) else unit)
    gain = _misfit(values - line, unit) - _misfit(values - step, unit)
    return None if gain > _HANDICAP * inflation**2 else line


def _misfit(away: Array, unit: float | Array) -> float:
    return float(np.add.reduce(np.minimum((away / unit) ** 2, CLIP**2)))
