"""Rules for times, rates and counts: ranks of trials, never assumptions about their shape.

The two-sided Mann-Whitney test says whether the sides differ. Its two one-sided forms, with the
contender scaled to the edges of the margin, say whether they are the same for every practical
purpose (TOST, Schuirmann 1987, on ranks; Wellek, "Testing Statistical Hypotheses of Equivalence and
Noninferiority", 2010, chapter 6). Both are exact at any number of trials, which is why they are
preferred to t tests at seven trials a side. Kendall's tau says whether a row rises or falls.

Null distributions of rank sums, ties included, are exact, and beyond many ranks normal. The shift
algorithm (Streitberg and Roehmel, "Exact distributions for permutation and rank tests", Statistical
Software Newsletter 12, 1986) counts subsets of ranks by their sum instead of one by one. SciPy's
closed forms know no ties, and its permutations take too long from 14 numbers on.

Of two medians of which only an interval each was kept, as in asv's files without samples, the
limits of the change are recovered from those of both sides, each side's arm by itself, since times
are skewed (MOVER: Zou and Donner, "Construction of confidence limits about effect measures",
Statistics in Medicine 27, 2008). An interval of one run knows nothing of the next run, so the noise
between runs is added to it. Logarithms are supposed to be normal.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from hybridwatch.analysis.power import LEVEL, POWER
from hybridwatch.analysis.verdict import Interval

Ranks = npt.NDArray[np.int64]
Alternative = Literal["two-sided", "less", "greater"]
CONFIDENCE: Final = 0.95
SETTLING_TRIALS: Final = 4
"""Below this the smallest two-sided p-value, 2 / C(2n, n), stays above 0.05: 0.1 at n = 3."""
RESAMPLES: Final = 4000
SEED: Final = 20260401
"""Any constant: the same record must always give the same interval."""
_EXACT_TRIALS: Final = 60
"""Both sides together. Up to here the exact distribution is fast; beyond it the normal
approximation is as good."""


def doubled_midranks(values: Sequence[float] | npt.NDArray[np.float64]) -> Ranks:
    """Give twice the rank of each number, whole also where equal ones share their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    doubled: Ranks = 2 * np.cumsum(counts) - counts + 1
    return doubled[group]


def rank_sum_p(ranks: Ranks, seen: int, alternative: Alternative, size: int | None = None) -> float:
    """Say how often a random subset of ranks has a sum as extreme as the one seen.

    Ranks are whole numbers of 0 and more, such as doubled midranks. A subset holds ``size`` ranks,
    each subset being equally likely (two samples); ``None`` draws every rank with probability 1/2
    (signs).
    """
    # In order, since a sum's last digit depends on it and a test must not.
    share = _shares(tuple(np.sort(ranks).tolist()), size)
    return _p(float(share[: seen + 1].sum()), float(share[seen:].sum()), alternative)


def normal_p(
    ranks: Ranks,
    seen: int,
    alternative: Alternative,
    size: int | None = None,
    continuity: float = 0.0,
) -> float:
    """Give nearly the same as ``rank_sum_p`` in no time: the sum's distribution is near normal.

    ``continuity`` is half the distance between possible sums, to count the one seen wholly.
    """
    n = len(ranks)
    if size is None:
        center, variance = ranks.sum() / 2, (ranks**2).sum() / 4
    else:
        center, variance = size * ranks.mean(), size * (n - size) / (n - 1) * ranks.var()
    deviation = math.sqrt(variance)
    less = special.ndtr((seen - center + continuity) / deviation)
    greater = special.ndtr((center - seen + continuity) / deviation)
    return _p(float(less), float(greater), alternative)


def _p(less: float, greater: float, alternative: Alternative) -> float:
    match alternative:
        case "less":
            return min(1.0, less)
        case "greater":
            return min(1.0, greater)
        case "two-sided":
            return min(1.0, 2 * less, 2 * greater)


@lru_cache(maxsize=64)  # without ties the ranks are the same in every test of a report
def _shares(ranks: tuple[int, ...], size: int | None) -> Any:
    total = sum(ranks)
    if size is None:
        # likely[s]: how likely the ranks seen so far have the sum s.
        likely = np.zeros(total + 1)
        likely[0] = 1.0
        for rank in ranks:
            likely[rank:] += likely[: total + 1 - rank].copy()
            likely /= 2
        return likely
    # ways[k, s]: how many k ranks out of those seen so far have the sum s.
    ways = np.zeros((size + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    return ways[size] / ways[size].sum()


def rank_p(
    baseline: Sequence[float], contender: Sequence[float], alternative: Alternative = "two-sided"
) -> float:
    """Test by Mann-Whitney whether the contender's trials rank differently from the baseline's.

    Exact, with ties too, up to 60 trials in all; then the normal approximation with tie correction.
    The alternative ``less`` tests whether the contender tends to be smaller. 1.0 when all numbers
    are equal.
    """
    pooled = [*baseline, *contender]
    if min(pooled) == max(pooled):
        return 1.0
    doubled = doubled_midranks([*contender, *baseline])
    size = len(contender)
    seen = int(doubled[:size].sum())
    if len(pooled) > _EXACT_TRIALS:
        # Doubled rank sums are 2 apart.
        return normal_p(doubled, seen, alternative, size=size, continuity=1)
    return rank_sum_p(doubled, seen, alternative, size=size)


def equivalence_p(
    baseline: Sequence[float], contender: Sequence[float], margin: float
) -> float | None:
    """Test whether the contender lies within the margin, a fraction, of the baseline.

    Two one-sided rank tests: the contender divided by ``1 + margin`` must still rank below the
    baseline, and divided by ``1 - margin`` above it. Gives the larger of the two p-values; ``None``
    where a ratio means nothing, as a number is not positive and the numbers are not all equal.
    """
    pooled = [*baseline, *contender]
    if min(pooled) == max(pooled):
        # No spread at all, perhaps at zero: every shift separates the sides completely.
        return 1 / math.comb(len(pooled), len(baseline))
    if min(pooled) <= 0:
        return None
    slower = rank_p(baseline, [value / (1 + margin) for value in contender], "less")
    faster = rank_p(baseline, [value / (1 - margin) for value in contender], "greater")
    return max(slower, faster)


def ratio_interval(baseline: Sequence[float], contender: Sequence[float]) -> Interval | None:
    """Bracket contender / baseline - 1 of the medians by a percentile bootstrap over trials.

    ``None`` below four trials a side, where no resampling can promise 95 %, and where the baseline
    reaches zero.
    """
    if min(len(baseline), len(contender)) < SETTLING_TRIALS or min(baseline) <= 0:
        return None
    drawn = _drawn(len(baseline), len(contender), RESAMPLES, SEED)
    old, new = (_medians(*pair) for pair in zip((baseline, contender), drawn, strict=True))
    low, high = np.quantile(new / old - 1, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Interval(float(low), float(high), CONFIDENCE)


def _medians(values: Sequence[float], drawn: tuple[Any, Any]) -> Any:
    # Sorted, so that the order of trials cannot reach the seeded draw.
    ordered = np.sort(values)
    lower, upper = (ordered[places] for places in drawn)
    return lower if len(values) % 2 else (lower + upper) / 2


# A report asks for as many trials at every metric.
@lru_cache(maxsize=8)
def _drawn(old: int, new: int, resamples: int, seed: int) -> tuple[tuple[Any, Any], ...]:
    """Say which places among the sorted trials of a side lie in the middle of each resample."""
    rng = np.random.default_rng(seed)
    return tuple(_middle(rng.integers(0, size, size=(resamples, size))) for size in (old, new))


def _middle(drawn: Any) -> tuple[Any, Any]:
    size = drawn.shape[1]
    lower, upper = (size - 1) // 2, size // 2
    drawn.partition((lower, upper), axis=1)
    return drawn[:, lower].copy(), drawn[:, upper].copy()


_EXACT: Final = 33
"""Beyond it the normal approximation is as good."""


def trend_p(values: Sequence[float]) -> float:
    """Test whether numbers, two or more and not all equal, rise or fall: Kendall's tau (1938).

    Exact without ties up to 33 numbers; then the normal approximation with tie correction.
    """
    n = len(values)
    lean = abs(int(np.sign(_rises(values)[0]).sum()))
    ties = np.unique(values, return_counts=True)[1]
    if ties.max() == 1 and n <= _EXACT:
        against = (n * (n - 1) // 2 - lean) // 2
        return min(1.0, 2 * float(_inversions(n)[: against + 1].sum()))
    variance = n * (n - 1) * (2 * n + 5) - int((ties * (ties - 1) * (2 * ties + 5)).sum())
    return 2 * float(special.ndtr(-lean / math.sqrt(variance / 18)))


def typical_step(values: Sequence[float]) -> float:
    """Estimate the rise from one number to the next: the median over all pairs (Sen 1968)."""
    rises, apart = _rises(values)
    return float(np.median(rises / apart))


def _rises(values: Sequence[float]) -> tuple[Any, Any]:
    row = np.asarray(values, dtype=float)
    early, late = np.triu_indices(len(row), 1)
    return row[late] - row[early], late - early


def _inversions(n: int) -> Any:
    """Give the chances that a random order of ``n`` numbers has 0, 1, 2... pairs the wrong way."""
    likely = np.ones(1)
    for placed in range(2, n + 1):
        likely = np.convolve(likely, np.full(placed, 1 / placed))
    return likely


_CONFIDENCE: Final = 0.95
_ROUNDED: Final = 1e-5
"""Of a logarithm: asv keeps five digits of a limit."""


@dataclass(frozen=True, slots=True)
class MedianChange:
    """The logarithm of the change between two medians; its errors towards less and more."""

    change: float
    below: float
    above: float

    @property
    def p_value(self) -> float:
        """Of no change, two-sided."""
        error = self.below if self.change > 0 else self.above
        return float(2 * special.ndtr(-abs(self.change) / error))

    def equivalence_p(self, margin: float) -> float:
        """Of the two one-sided tests (Schuirmann 1987), the larger."""
        too_much = special.ndtr((self.change - math.log1p(margin)) / self.above)
        too_little = special.ndtr((math.log1p(-margin) - self.change) / self.below)
        return float(max(too_much, too_little))

    @property
    def interval(self) -> Interval:
        """Of the change as a fraction, 95 %."""
        reach = float(special.ndtri((1 + _CONFIDENCE) / 2))
        low, high = self.change - reach * self.below, self.change + reach * self.above
        return Interval(math.expm1(low), math.expm1(high), _CONFIDENCE)

    def detectable(self, bound: float) -> float:
        """Give the smallest change, a fraction, found to exceed ``bound`` 8 times in 10."""
        error, power = max(self.below, self.above), special.ndtri(POWER)
        tested = (special.ndtri(1 - LEVEL / 2) + power) * error
        return float(math.expm1(max(tested, math.log1p(bound) + power * error)))


def change_between(
    old: float, new: float, intervals: tuple[Interval, Interval], noise: float
) -> MedianChange:
    """Give the change from one run's positive median to another's; ``noise`` is between runs."""
    arms = [_arms(center, one) for center, one in zip((old, new), intervals, strict=True)]
    (old_below, old_above), (new_below, new_above) = arms
    between = math.sqrt(2) * noise
    return MedianChange(
        math.log(new / old),
        math.hypot(new_below, old_above, between, _ROUNDED),
        math.hypot(new_above, old_below, between, _ROUNDED),
    )


def _arms(center: float, interval: Interval) -> tuple[float, float]:
    reach = float(special.ndtri((1 + interval.confidence) / 2))
    below, above = math.log(center / interval.low), math.log(interval.high / center)
    return max(0.0, below) / reach, max(0.0, above) / reach
