"""Rules for times, rates and counts: ranks of trials, never assumptions about their shape.

The two-sided Mann-Whitney test says whether the sides differ. Its two one-sided forms, with the
contender scaled to the edges of the margin, say whether they are the same for every practical
purpose (TOST, Schuirmann 1987, on ranks; Wellek, "Testing Statistical Hypotheses of Equivalence
and Noninferiority", 2010, chapter 6). Both are exact at any number of trials, which is why they
are preferred to t tests at seven trials a side.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from hybridwatch.analysis.shift import Alternative, doubled_midranks, normal_p, rank_sum_p
from hybridwatch.analysis.verdict import Interval

CONFIDENCE: Final = 0.95
SETTLING_TRIALS: Final = 4
"""Below this the smallest two-sided p-value, 2 / C(2n, n), stays above 0.05: 0.1 at n = 3."""

RESAMPLES: Final = 4000
SEED: Final = 20260401
"""Any constant: the same record must always give the same interval."""
_EXACT_TRIALS: Final = 60
"""Both sides together. Up to here the exact distribution is fast; beyond it the normal
approximation is as good."""


def rank_p(
    baseline: Sequence[float],
    contender: Sequence[float],
    alternative: Alternative = "two-sided",
) -> float:
    """Test whether the contender's trials rank differently from the baseline's.

    Exact, with ties too, up to 60 trials in all; then the normal approximation with tie
    correction.

    Args:
        baseline: One number per trial, at least one.
        contender: The same of the other side.
        alternative: ``less`` asks whether the contender tends to be smaller.

    Returns:
        The p-value of the Mann-Whitney test; 1.0 when all numbers are equal.
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
    """Test whether the contender lies within the margin of the baseline.

    Two one-sided rank tests: the contender divided by ``1 + margin`` must still rank below the
    baseline, and divided by ``1 - margin`` above it.

    Args:
        baseline: One number per trial, at least one.
        contender: The same of the other side.
        margin: Half-width of the band as a fraction of the baseline, between 0 and 1.

    Returns:
        The larger of the two p-values; ``None`` where a ratio means nothing, because a number is
        zero or negative and the numbers are not all equal.
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
    """Bracket the relative change of the medians by a percentile bootstrap over trials.

    Args:
        baseline: One number per trial.
        contender: The same of the other side.

    Returns:
        The interval around contender / baseline - 1. ``None`` below four trials a side, where no
        resampling can promise 95 %, and where the baseline reaches zero.
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
