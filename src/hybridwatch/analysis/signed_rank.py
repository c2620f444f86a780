"""Rules for times, rates and counts whose two sides were measured in turn: block by block.

The two trials of a block share the state of the machine, so their ratio is free of drift. All that
is asked of the logarithms of these ratios is that they scatter evenly about the effect, which holds
for any noise that treats both sides alike. On them Wilcoxon's signed-rank test (Wilcoxon 1945;
zeros as in Pratt 1959) at the edges of the margin says whether the sides are the same (TOST,
Schuirmann 1987), and the median of all pairwise means (Hodges and Lehmann 1963) by how much they
differ: nearly as sharp as the mean, and deaf to single hiccups. Whether they differ at all is asked
of all metrics together (``sign_flips``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import special

from hybridwatch.analysis.rank import (
    CONFIDENCE,
    Alternative,
    doubled_midranks,
    normal_p,
    rank_sum_p,
)
from hybridwatch.analysis.verdict import Interval

Ratios = Sequence[float] | npt.NDArray[np.float64]

SETTLING_BLOCKS: Final = 6
"""Below this the smallest two-sided p-value, 2 / 2^n, stays above 0.05: 0.0625 at n = 5."""

_EXACT_BLOCKS: Final = 100
_DIGITS: Final = 12
"""Ratios that differ in the last digits of a float are tied."""
RESAMPLES: Final = 2000
_FEWEST_RESAMPLES: Final = 200
_MOST_MEANS: Final = 40_000_000
"""Beyond a hundred blocks fewer resamples: their intervals are narrow, and time counts."""
_BATCH: Final = 50_000
"""Weights at a time; as many fit into a processor's cache."""
SEED: Final = 20260402
"""Any constant: the same record must always give the same interval."""


@dataclass(frozen=True, slots=True)
class Change:
    """How much the blocks changed."""

    effect: float
    interval: Interval | None
    equivalence_p: float


def estimate(ratios: Ratios, margin: float) -> Change:
    """Say by how much the contender differs within blocks, and whether that is within a margin."""
    return Change(typical_change(ratios), change_interval(ratios), equivalence_p(ratios, margin))


def signed_rank_p(ratios: Ratios, alternative: Alternative = "two-sided") -> float:
    """Test whether the blocks lean to one side.

    Exact, with ties and zeros too, up to 100 blocks; then the normal approximation. Ratios are
    logarithms of contender / baseline, one per block, at least one. The alternative ``less`` asks
    whether the contender tends to be smaller. 1.0 when no block shows a difference.
    """
    rounded = np.round(np.asarray(ratios, dtype=float), _DIGITS)
    if not rounded.any():
        return 1.0
    # Blocks without a difference take the lowest ranks and no side.
    doubled = doubled_midranks(np.abs(rounded))
    seen = int(doubled[rounded > 0].sum())
    test = rank_sum_p if len(rounded) <= _EXACT_BLOCKS else normal_p
    return test(doubled[rounded != 0], seen, alternative)


def equivalence_p(ratios: Ratios, margin: float) -> float:
    """Test whether the contender lies within the margin of the baseline.

    Two one-sided signed-rank tests of the ratios, divided by ``1 + margin`` and ``1 - margin``.

    Ratios are logarithms of contender / baseline, one per block. ``margin`` is a fraction of the
    baseline, between 0 and 1. Gives the larger of the two p-values.
    """
    logs = np.asarray(ratios, dtype=float)
    not_higher = signed_rank_p(logs - math.log1p(margin), "less")
    not_lower = signed_rank_p(logs - math.log1p(-margin), "greater")
    return max(not_higher, not_lower)


def typical_change(ratios: Ratios) -> float:
    """Estimate contender / baseline - 1 by the median of all pairwise means of the logarithms."""
    return float(np.expm1(np.median(_pairwise_means(np.asarray(ratios, dtype=float))[0])))


def change_interval(ratios: Ratios) -> Interval | None:
    """Bracket the relative change by a percentile bootstrap over blocks.

    Percentiles are set farther out than 2.5 % and 97.5 %, as Hesterberg ("What teachers should
    know about the bootstrap", The American Statistician 69, 2015, section 3.2) advises for few
    blocks: without it intervals from ten blocks hold the truth 9 times in 10 only.

    The interval is around contender / baseline - 1; ``None`` below six blocks.
    """
    n = len(ratios)
    if n < SETTLING_BLOCKS:
        return None
    quantile = special.stdtrit(n - 1, (1 + CONFIDENCE) / 2) * math.sqrt(n / (n - 1))
    tail = float(special.ndtr(-quantile))
    # Sorted, so that the order of blocks cannot reach the seeded draw.
    low, high = np.quantile(_resampled(np.sort(ratios)), (tail, 1 - tail))
    return Interval(float(np.expm1(low)), float(np.expm1(high)), CONFIDENCE)


def _pairwise_means(logs: Any) -> tuple[Any, Any, Any]:
    """Give the means of all pairs of blocks, each block with itself too, and who they are."""
    left, right = np.triu_indices(len(logs))
    return (logs[left] + logs[right]) / 2, left, right


def _resampled(logs: Any) -> Any:
    """Give the median of pairwise means of many resamples.

    A resample holds no other means than the blocks themselves, only more or fewer of each. So they
    are sorted once, and each resample merely says how often each counts.
    """
    n = len(logs)
    means, left, right = _pairwise_means(logs)
    order = np.argsort(means, kind="stable")
    means, left, right = means[order], left[order], right[order]
    wanted = max(_FEWEST_RESAMPLES, min(RESAMPLES, _MOST_MEANS // len(means)))
    drawn = _drawn(n, wanted, SEED)
    step = max(1, _BATCH // len(means))
    batches = (drawn[at : at + step] for at in range(0, wanted, step))
    return np.concatenate([_weighted_medians(means, left, right, some) for some in batches])


# A report asks for as many metrics as often, and a store for one report a run.
@lru_cache(maxsize=8)
def _drawn(n: int, wanted: int, seed: int) -> Any:
    """Say how often each of ``n`` blocks counts in each resample; seeded, so always the same."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, np.full(n, 1 / n), size=wanted).astype(np.int32)


def _weighted_medians(means: Any, left: Any, right: Any, drawn: Any) -> Any:
    n = drawn.shape[1]
    itself = left == right
    weights = drawn[:, left] * (drawn[:, right] + itself)
    weights[:, itself] //= 2
    reached = 2 * np.cumsum(weights, axis=1, dtype=np.int32)
    pairs = n * (n + 1) // 2
    lower, upper = np.argmax(reached >= pairs, axis=1), np.argmax(reached > pairs, axis=1)
    return (means[lower] + means[upper]) / 2
