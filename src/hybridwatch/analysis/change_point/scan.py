"""Where does a stretch of scores split best, and is that a step or a level that wanders?

Every question is a difference of means, counted in its own standard deviation and held against
what it needs to be believed; an answer of 1 or more is a change. Cumulative sums make each linear
in the points (Page 1954; for excursions Olshen et al., Biostatistics 5, 2004).

A step and a straight line explain three quarters of each other's energy, so a test of one alone
always finds the other. The two are fitted robustly and the better one is taken.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.change_point.noise import (
    CLIP,
    Array,
    bounded,
    compute_means,
    compute_medians,
    compute_products,
)

FEWEST: Final = 3
"""Points on either side of a change: two may be outliers, and often are."""
SHORTEST: Final = 2 * FEWEST
"""Points of a stretch that can hold a change."""

_LONGEST_EXCURSION: Final = 40
_EXCURSIONS: Final = np.unique((5 * 1.25 ** np.arange(10)).astype(np.int64))
"""Lengths looked for: from 5 points up in steps of a quarter. Longer ones split well singly."""
_EXCURSION_COSTS: Final = 1.25
"""There are many more places for an excursion than for a split, so it needs to be clearer."""
_LEAST_UNEXPLAINED: Final = 0.2
"""Of a step's energy; where a slope explains more than the rest, a jump cannot be seen."""
_KEPT: Final = 1024
"""Points up to which what depends on their number alone is kept for the next time."""


def needed(shorter: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Standard deviations that a difference of two sides of ``n`` points needs to be believed.

    More where one side is short, since replay looks at every end of a growing series once, and more
    in short series, where the noise is hardly known. The four numbers were chosen on replays of
    shuffled real histories and are measured by ``python -m hybridwatch_lab.calibration``.
    """
    return 3.6 + 0.6 / np.sqrt(shorter / 2) + (5 + 20 / shorter) / n


@dataclass(frozen=True, slots=True)
class Split:
    """The best place to cut: first points of new levels; strength over what is needed."""

    strength: float
    cuts: tuple[int, ...]

    def over(self, deviation: float) -> "Split":
        """Count the strength in standard deviations of sums."""
        return Split(self.strength / deviation, self.cuts)


NOWHERE: Final = Split(0.0, ())


@dataclass(frozen=True, slots=True)
class _Plan:
    share: Array
    step: Array
    jump: Array
    time: Array


@dataclass(frozen=True, slots=True)
class _Excursions:
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    part: Array
    weight: Array


def _make_plan(n: int) -> _Plan:
    place = np.arange(FEWEST, n - FEWEST + 1)
    energy = place * (n - place) / n
    wanted = needed(np.minimum(place, n - place), n)
    unexplained = 1 - 3 * place * (n - place) / (n**2 - 1)
    jump = 1 / np.sqrt(energy * np.maximum(unexplained, _LEAST_UNEXPLAINED)) / wanted
    return _Plan(
        share=place / n,
        step=1 / np.sqrt(energy) / wanted,
        jump=np.where(unexplained < _LEAST_UNEXPLAINED, 0.0, jump),
        time=np.arange(n, dtype=np.float64) - (n - 1) / 2,
    )


@lru_cache(maxsize=_KEPT)
def _excursions(n: int) -> _Excursions:
    longest = min(_LONGEST_EXCURSION, n // 2)
    lengths = [int(length) for length in _EXCURSIONS if length < longest]
    starts = [np.arange(FEWEST, n - FEWEST - length + 1) for length in lengths]
    start = np.concatenate([np.empty(0, np.int64), *starts])
    size = np.repeat(lengths, [len(some) for some in starts]).astype(np.int64)
    return _Excursions(
        start=start,
        end=start + size,
        part=size / n,
        weight=1 / np.sqrt(size * (1 - size / n)) / needed(size, n) / _EXCURSION_COSTS,
    )


_keep_plan = lru_cache(maxsize=_KEPT)(_make_plan)


def _plan(n: int) -> _Plan:
    return _keep_plan(n) if n <= _KEPT else _make_plan(n)


def best_step(scores: Array) -> Split:
    """Find the one cut between two levels."""
    plan = _plan(scores.size)
    return _best(scores, plan.share, plan.step)


def best_jump(scores: Array) -> Split:
    """Find the one cut of a line, from which ``scores`` are distances, into two parallel ones."""
    plan = _plan(scores.size)
    level = scores - compute_means(scores)
    rest = level - plan.time * compute_slope(level)
    return _best(rest, plan.share, plan.jump)


def best_excursion(scores: Array) -> Split:
    """Find the two cuts around a short level between two stretches of another, piece by piece."""
    stride = _KEPT - _LONGEST_EXCURSION
    best = NOWHERE
    for start in range(0, max(scores.size - _LONGEST_EXCURSION, 1), stride):
        found = _best_excursion(scores[start : start + _KEPT])
        if found.strength > best.strength:
            best = Split(found.strength, tuple(start + cut for cut in found.cuts))
    return best


def _best_excursion(scores: Array) -> Split:
    known = _excursions(scores.size)
    if not known.start.size:
        return NOWHERE
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    away = np.abs(sums[known.end] - sums[known.start] - known.part * sums[-1]) * known.weight
    place = int(away.argmax())
    return Split(float(away[place]), (int(known.start[place]), int(known.end[place])))


def compute_slope(values: Array) -> float:
    """Least-squares slope per point of values with mean zero."""
    n = values.size
    return compute_products(_plan(n).time, values) / (n * (n**2 - 1) / 12)


def list_times(n: int) -> Array:
    """Count the points from the middle of a stretch."""
    return _plan(n).time


def _best(scores: Array, share: Array, weight: Array) -> Split:
    sums = np.cumsum(scores)
    n = scores.size
    away = np.abs(sums[FEWEST - 1 : n - FEWEST] - share * sums[-1]) * weight
    place = int(away.argmax())
    strength = float(away[place])
    return Split(strength, (place + FEWEST,)) if math.isfinite(strength) else NOWHERE


FEWEST_OF_LINE: Final = 12
"""Fewest points that distinguish a line from a step."""

_STEP_MARGIN: Final = 5.0
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
    third, time = n // 3, list_times(n)
    slope = (compute_medians(values[n - third :]) - compute_medians(values[:third])) / (n - third)
    line = slope * time
    line += compute_medians(values - line)
    away = bounded(values - line, _INFLUENCE * unit)
    mean = compute_means(away)
    line += mean + time * compute_slope(away - mean)
    return line


def compute_tilt(scores: Array) -> float:
    """Say how clearly scores rise or fall, in standard deviations for independent noise."""
    n = scores.size
    level = scores - compute_means(scores)
    return compute_slope(level) * math.sqrt(n * (n**2 - 1) / 12)


def is_line(values: Array, cut: int, unit: float | Array, inflation: float) -> Array | None:
    """Say whether a line fits a stretch about as well as a step at ``cut``; gives its points if so.

    ``unit`` is the standard deviation of a point, or of each; ``inflation`` is that of sums of
    noise, for neighbours that are alike.
    """
    line = line_of(values, unit)
    step = np.empty_like(values)
    for side in (slice(0, cut), slice(cut, None)):
        step[side] = level_of(values[side], unit[side] if isinstance(unit, np.ndarray) else unit)
    gain = _misfit(values - line, unit) - _misfit(values - step, unit)
    return None if gain > _STEP_MARGIN * inflation**2 else line


def _misfit(away: Array, unit: float | Array) -> float:
    return float(np.add.reduce(np.minimum((away / unit) ** 2, CLIP**2)))
