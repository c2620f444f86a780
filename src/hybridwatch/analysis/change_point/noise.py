"""The noise of a series, estimated so that changes of level hardly count; levels that are two.

Differences of neighbours hold one change of level each at most, so quantiles of them see the noise
alone (von Neumann 1941 for the idea, the median for robustness). How they grow with the distance
measures how alike neighbours are, as a variogram does.

Runs, or the trials within a run, may fall on one of two levels. The values of one level are split
where the halves vary least (Otsu 1979), the extremes left out. Noise of one mode splits, too, but
it has no valley: halfway between two levels there are never fewer values than at both. How clearly
there are is counted in standard deviations over runs, whose trials are alike. Of runs the halves
must also vary much less than the whole does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.change_point import History

Array = npt.NDArray[np.float64]

CLIP: Final = 3.0
"""Scores end here, so that no outlier weighs more than three standard deviations."""

LEAST_DEVIATION: Final = 0.5
"""Of a score: what seems quieter than half the noise that it is counted in is luck."""

_FAR: Final = 4
_MEDIAN_OF_DIFFERENCES: Final = 0.954
"""Of |x - y| for standard normal x, y: 0.6745 * sqrt(2)."""
_UPPER_QUARTILE: Final = 0.586
"""Median over upper quartile of a half-normal; stands in where most neighbours are equal."""
_MOST_ALIKE: Final = 0.95
_SURE_POINTS: Final = 40
_CONTRADICTION: Final = 2.0
_BOLDNESS: Final = 0.8


def compute_means(values: Array) -> float:
    """Mean of a row; NumPy's own takes longer to begin than to add a hundred numbers."""
    return float(np.add.reduce(values)) / values.size


def compute_products(left: Array, right: Array) -> float:
    """Inner product; ``@`` waits for threads on a busy machine, longer than it takes."""
    return float(np.einsum("i,i->", left, right))


def compute_medians(values: Array) -> float:
    """Median, the upper one of an even number; many times faster than NumPy's on short rows."""
    middle = values.size // 2
    ranked = values.copy()
    ranked.partition(middle)
    return float(ranked[middle])


def bounded(values: Array, limit: float | Array) -> Array:
    """Clip at both signs of a limit."""
    return np.minimum(np.maximum(values, -limit), limit)


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a stretch.

    ``scale`` is the standard deviation of a point, changes from one to the next alone; 0 when most
    neighbours are equal. ``correlation`` of neighbours, from how differences grow with distance, is
    0 to 0.95.
    """

    scale: float
    correlation: float

    def at_least(self, whole: "Noise") -> "Noise":
        """Keep a short stretch from looking much quieter than what it is a part of."""
        return Noise(max(self.scale, whole.scale / 2), self.correlation)


def compute_noise(values: Array) -> Noise:
    """Estimate the noise of at least six values."""
    near = np.abs(values[1:] - values[:-1])
    half, upper = near.size // 2, 3 * near.size // 4
    near.partition((half, upper))
    typical = float(near[half]) or float(near[upper]) * _UPPER_QUARTILE
    if typical == 0:
        return Noise(0.0, 0.0)
    growth = min(compute_medians(np.abs(values[_FAR:] - values[:-_FAR])) / typical, _FAR)
    return Noise(typical / _MEDIAN_OF_DIFFERENCES, _correlation_behind(growth**2))


def _correlation_behind(growth: float) -> float:
    """Solve (1 - r^4) / (1 - r) = growth, which holds for autoregressive noise of order one."""
    low, high = 0.0, _MOST_ALIKE
    if growth <= 1:
        return low
    for _ in range(10):
        middle = (low + high) / 2
        if 1 + middle + middle**2 + middle**3 < growth:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class NoiseSpread:
    """Deviation of a sum of n scores, over sqrt(n), and its share by likeness of neighbours."""

    deviation: float
    inflation: float


def compute_least_spread(scores: Array) -> float:
    """Bound ``compute_spread`` from below, cheaply; alternating noise is up to a half too high."""
    steps = scores[1:] - scores[:-1]
    return max(
        _BOLDNESS * math.sqrt(compute_products(steps, steps) / (2 * steps.size)), LEAST_DEVIATION
    )


def compute_spread(scores: Array, cuts: tuple[int, ...], correlation: float) -> NoiseSpread:
    """Estimate how far sums of scores stray, when the level changes at the ``cuts``.

    What remains when the levels are taken off says how alike neighbours are. Changes that were not
    cut away look the same, though; where the differences, of which ``correlation`` is, disagree,
    they are believed.
    """
    n = scores.size
    rest = scores.copy()
    for start, end in zip((0, *cuts), (*cuts, n), strict=True):
        if end > start:
            rest[start:end] -= compute_means(rest[start:end])
    squares = compute_products(rest, rest)
    if squares == 0:
        return NoiseSpread(LEAST_DEVIATION, 1.0)
    variance = squares / (n - 1 - len(cuts))
    alike = _unbiased(compute_products(rest[1:], rest[:-1]) / squares, n, len(cuts))
    error = 1 / math.sqrt(n)
    if n >= _SURE_POINTS and alike > correlation + _CONTRADICTION * error:
        steps = scores[1:] - scores[:-1]
        variance = compute_products(steps, steps) / (2 * steps.size * (1 - correlation))
        alike = correlation
    inflation = _inflation(alike, error)
    return NoiseSpread(max(math.sqrt(variance), LEAST_DEVIATION) * inflation, inflation)


def compute_inflation(rest: Array, cuts: tuple[int, ...]) -> float:
    """Compute how much further sums of features, a row a point, stray than independent ones."""
    n = len(rest)
    alike = float(np.einsum("ij,ij->", rest[1:], rest[:-1]) / np.einsum("ij,ij->", rest, rest))
    return _inflation(_unbiased(alike, n, len(cuts)), 1 / math.sqrt(n))


def compute_autoregression(rest: Array) -> float:
    """Estimate how much of each point the next one keeps; less where that is not sure."""
    squares = compute_products(rest, rest)
    if squares == 0:
        return 0.0
    alike = _unbiased(compute_products(rest[1:], rest[:-1]) / squares, rest.size, 1)
    return alike * max(0.0, _sureness(alike, 1 / math.sqrt(rest.size)))


def _unbiased(alike: float, n: int, cuts: int) -> float:
    """Every mean taken away biases the estimate by as much (Marriott and Pope 1954)."""
    return min(_MOST_ALIKE, alike + (1 + cuts) * (1 + 3 * max(alike, 0.0)) / n)


def _sureness(alike: float, error: float) -> float:
    """From 0, below one standard error, to 1, from two on; less than 0 where it is nothing."""
    return min(1.0, alike / error - 1)


def _inflation(alike: float, error: float) -> float:
    """Widen for neighbours that are surely alike, and then by the estimate's own error too."""
    sure = _sureness(alike, error)
    if sure <= 0:
        return 1.0
    wide = min(_MOST_ALIKE, (alike + error * math.sqrt(1 - alike**2)) * sure)
    return math.sqrt((1 + wide) / (1 - wide))


def compute_scores(values: Array, unit: float | Array) -> Array:
    """Count distances from the median in units of noise (0: as far as can be), and clip them."""
    away: Array = values - compute_medians(values)
    if isinstance(unit, float) and unit == 0:
        extremes: Array = np.sign(away) * CLIP
        return extremes
    return bounded(away / unit, CLIP)


_FEWEST_RUNS: Final = 20
_LEAST_SHARE: Final = 0.2
"""Of what falls on either level: fewer are slow nights."""
_LEAST: Final = 4
"""Values on either level that a split leaves."""
_EXTREMES: Final = 0.05
"""Share of values on either side that are left out of the search for a split."""
_RELEVANT: Final = 0.01
_VALLEY: Final = 2.4
"""Standard deviations by which there are fewer values between the levels than at one."""
_WINDOW: Final = 1 / 3
"""Of the distance between the levels: how far apart values are counted as being at one place."""
_REDUCTION: Final = 4.0
"""By how much a split reduces the variance of evenly spread values; of normal ones 2.75."""
_LUCK: Final = 60.0
"""Added over their number: few values split well by luck."""
_PURE: Final = 0.8
"""Share of a run's trials on one level from which on its start has chosen it."""


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """Two levels of whole runs (``by_run``) or of trials, in their unit; ``share`` is higher."""

    low: float
    high: float
    share: float
    by_run: bool

    def text(self, write: Callable[[float], str]) -> str:
        """Say it in a sentence; ``write`` gives a level its unit."""
        what = "Runs fall" if self.by_run else "Trials within a run fall"
        why = "from start to start of the engine" if self.by_run else "from trial to trial"
        return (
            f"{what} on one of two levels, {write(self.low)} and "
            f"{write(self.high)} ({100 * self.share:.0f} % on the higher), {why}: what one run "
            "differs by may be this luck."
        )


def two_levels(runs: Sequence[Sequence[float] | Array], history: History) -> TwoLevels | None:
    """Say whether the present level of a series is two, after the changes in its ``history``.

    ``runs`` has the trials of each run, oldest first, or its median alone; positive.
    """
    ends = [point.last for point in history.points] + [drift.end for drift in history.drifts]
    present = [np.asarray(run, dtype=np.float64) for run in runs[max(ends, default=0) :]]
    if len(present) < _FEWEST_RUNS or min(run.min() for run in present) <= 0:
        return None
    logs = [np.log(run) for run in present]
    return _find_levels(logs, by_run=True) or _find_levels(logs, by_run=False)


def _find_levels(trials: Sequence[Array], *, by_run: bool) -> TwoLevels | None:
    runs = [np.atleast_1d(np.median(run)) for run in trials] if by_run else trials
    values = np.concatenate(runs)
    border, reduction = _split(values)
    above = values > border
    if not _LEAST_SHARE <= above.mean() <= 1 - _LEAST_SHARE:
        return None
    low, high = float(np.median(values[~above])), float(np.median(values[above]))
    shares = [float((run > border).mean()) for run in trials]
    is_pure = float(np.mean([max(share, 1 - share) for share in shares])) >= _PURE
    if by_run != is_pure or (by_run and reduction < _REDUCTION + _LUCK / len(runs)):
        return None
    if high - low < _RELEVANT or _valley(runs, low, high) < _VALLEY:
        return None
    return TwoLevels(math.exp(low), math.exp(high), float(above.mean()), by_run)


def _valley(runs: Sequence[Array], low: float, high: float) -> float:
    places = np.array([low, (low + high) / 2, high])
    near = _WINDOW * (high - low) / 2
    counts = np.array([(np.abs(run - places[:, None]) < near).sum(axis=1) for run in runs])
    emptier = 0 if counts[:, 0].sum() < counts[:, 2].sum() else 2
    missing = counts[:, emptier] - counts[:, 1]
    return float(missing.sum() / math.sqrt(max(float(missing @ missing), 1.0)))


def _split(values: Array) -> tuple[float, float]:
    """Where values split best, and how much smaller their variance is within the halves."""
    ranked, extremes = np.sort(values), int(_EXTREMES * values.size)
    ranked = ranked[extremes : values.size - extremes]
    n = ranked.size
    below = np.arange(_LEAST, n - _LEAST + 1)
    sums = np.cumsum(ranked)
    gap = sums[below - 1] / below - (sums[-1] - sums[below - 1]) / (n - below)
    explained = gap**2 * below * (n - below) / n
    best = int(explained.argmax())
    total = float(((ranked - ranked.mean()) ** 2).sum())
    rest = max(total - float(explained[best]), np.finfo(float).tiny)
    at = int(below[best])
    return float(ranked[at - 1] + ranked[at]) / 2, total / rest if total > 0 else 1.0
