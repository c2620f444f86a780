"""Rules for times, rates and counts whose two sides were measured in turn: block by block.

Whether anything changed is one joint test of all metrics. Without a change either trial of a block
is as likely to be the larger, so the sign of a block may be flipped, in all metrics at once, since
these share its two trials. The largest statistic over all metrics is held against the largest over
all metrics after each flip, stepping down from the clearest metric (Westfall and Young,
"Resampling-Based Multiple Testing", 1993, sections 2.6 and 2.8). The chance of even one false alarm
is then at most the level, whatever the noise, and metrics that move together cost each other
little. Seven blocks tell hardly anything about the noise of one metric, so metrics of one load
share it, as far as they are alike (Smyth, Statistical Applications in Genetics and Molecular
Biology 3, 2004, article 3). A scale decides only about power: flips leave it as it is, and so the
test stays exact.

By how much a metric changed is asked of the logarithms of its blocks' ratios, which are free of
drift. All that is asked of them is that they scatter evenly about the effect. Wilcoxon's
signed-rank test (Wilcoxon 1945; zeros as in Pratt 1959) at the edges of the margin says whether the
sides are the same (TOST, Schuirmann 1987), and the median of all pairwise means (Hodges and Lehmann
1963) by how much they differ: nearly as sharp as the mean, and deaf to single hiccups.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
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

FLIPS: Final = 4096
"""Flips beyond which chance takes as many, the identity among them (Phipson and Smyth 2010)."""
FLIP_SEED: Final = 20260403
"""Any constant: the same record must always give the same p-value."""
REACH: Final = 4.0
"""Standard deviations beyond which a block counts no more: one hiccup must not decide."""
_NORMAL: Final = 1.4826
"""Median size times this is the standard deviation of normal noise around 0."""

OWN_NOISE_PENALTY: Final = 1.0
"""Standard deviations that a row must be clearer by its own noise. One costs no power to be seen
where noise is alike; without it 0.61 would be 0.51 (seven blocks, +5 % in one of nine metrics)."""

_FULL: Final = 1e-6
"""Below this all blocks agree, and rounding would decide which of two such rows is the clearer."""
_DIGITS: Final = 12
"""Ratios that differ in the last digits of a float are tied."""
_TIED: Final = 1e-9
_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One metric's log ratios of blocks, positive where worse; it may share its scale."""

    ratios: tuple[float, ...]
    shares_variance: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """One-sided p-values of a row: by itself, and for the largest of all rows, stepping down."""

    alone: float
    adjusted: float


def flip_p(rows: Sequence[BlockRow]) -> tuple[tuple[Tail, Tail], ...]:
    """Test whether rows of one family became worse, and whether they became better."""
    signs = _signs(max(len(row.ratios) for row in rows))
    # No flip of one metric's blocks goes against any of another's, so that all share the flips.
    clear = [
        _clearness(signs[:, : len(row.ratios)], *one)
        for row, one in zip(rows, _noise(rows), strict=True)
    ]
    worse, better = _step_down(clear), _step_down([-each for each in clear])
    return tuple(zip(worse, better, strict=True))


def _noise(rows: Sequence[BlockRow]) -> Iterator[tuple[Any, float, float]]:
    """Give each row's blocks, their mean square, and the same as shared with others of its kind."""
    ratios = [_clipped(row.ratios) for row in rows]
    own = [float(np.mean(np.sort(some**2))) for some in ratios]
    shared = list(own)
    sharers: defaultdict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row.shares_variance and own[at] > 0:
            sharers[len(row.ratios)].append(at)
    for n, members in sharers.items():
        for at, power in zip(members, moderated([own[at] for at in members], n), strict=True):
            shared[at] = power
    return zip(ratios, own, shared, strict=True)


def _clearness(flips: Any, ratios: Any, own: float, shared: float) -> Any:
    """Say after each flip how far from 0 a row is, in standard deviations.

    By the shared noise. Or, where that is clearer by ``OWN_NOISE_PENALTY``, by its own: Student's
    t, brought to a normal scale (Wallace 1959). Without it a change of a row with hardly any noise
    would drown in another row that is all noise.
    """
    if not own:
        return np.zeros(len(flips))
    n = len(ratios)
    sums = flips @ ratios / np.sqrt(n)
    left = np.maximum(1 - sums**2 / (n * own), _FULL)
    alone = np.sqrt(-(n - 1) * np.log(left)) * (8 * n - 7) / (8 * n - 5)
    return np.sign(sums) * np.maximum(np.abs(sums) / np.sqrt(shared), alone - OWN_NOISE_PENALTY)


def _clipped(ratios: Sequence[float]) -> Any:
    """Draw in what lies far beyond the typical size; sizes do not change when signs flip."""
    rounded = np.round(np.asarray(ratios, dtype=float), _DIGITS)
    limit = REACH * _NORMAL * float(np.median(np.abs(rounded)))
    return np.clip(rounded, -limit, limit) if limit else rounded


def moderated(powers: Sequence[float], n: int) -> Sequence[float]:
    """Draw mean squares (all positive) of ``n`` blocks together, the more the less they differ.

    Smyth's prior (section 6.2): the variance of their logarithms beyond that of chance, the
    trigamma function at ``n / 2``, says how many blocks the common scale is worth.
    """
    if len(powers) < 2:
        return powers
    logs = np.log(powers) - special.digamma(n / 2) + np.log(n / 2)
    middle = float(np.mean(np.sort(logs)))
    beyond = float(np.var(np.sort(logs), ddof=1)) - float(special.polygamma(1, n / 2))
    if beyond <= _TIED:
        return [float(np.exp(middle))] * len(powers)
    prior_n = 2 * _inverse_trigamma(beyond)
    common = np.exp(middle + special.digamma(prior_n / 2) - np.log(prior_n / 2))
    return [float((prior_n * common + n * power) / (prior_n + n)) for power in powers]


def _inverse_trigamma(value: float) -> float:
    """Newton's steps on one over the function, from below (Smyth's appendix)."""
    found = 0.5 + 1 / value
    for _ in range(_STEPS):
        seen = float(special.polygamma(1, found))
        step = seen * (1 - seen / value) / float(special.polygamma(2, found))
        found += step
        if abs(step) < _TIED * found:
            break
    return found


def _step_down(clear: Sequence[Any]) -> list[Tail]:
    # From the least clear row on, so that each is held against itself and all that are less clear.
    order = sorted(range(len(clear)), key=lambda at: float(clear[at][0]))
    largest = np.full(len(clear[0]), -np.inf)
    found = [Tail(1.0, 1.0)] * len(clear)
    for at in order:
        largest = np.maximum(largest, clear[at])
        bar = clear[at][0] - _TIED
        found[at] = Tail(float(np.mean(clear[at] >= bar)), float(np.mean(largest >= bar)))
    least = 0.0
    for at in reversed(order):
        least = max(least, found[at].adjusted)
        found[at] = Tail(found[at].alone, least)
    return found


@lru_cache(maxsize=16)
def _signs(blocks: int) -> Any:
    """Every flip of so many blocks, or as many as chance takes; what was seen comes first."""
    if 2**blocks <= FLIPS:
        return np.asarray(list(itertools.product((1.0, -1.0), repeat=blocks)))
    drawn = np.random.default_rng(FLIP_SEED).integers(0, 2, size=(FLIPS, blocks))
    drawn[0] = 0
    return 1.0 - 2.0 * drawn


Ratios = Sequence[float] | npt.NDArray[np.float64]

SETTLING_BLOCKS: Final = 6
"""Below this the smallest two-sided p-value, 2 / 2^n, stays above 0.05: 0.0625 at n = 5."""

_EXACT_BLOCKS: Final = 100
RESAMPLES: Final = 2000
_FEWEST_RESAMPLES: Final = 200
_MOST_MEANS: Final = 40_000_000
"""Beyond a hundred blocks fewer resamples: their intervals are narrow, and time counts."""
_BATCH: Final = 50_000
"""Weights at a time; as many fit into a processor's cache."""
SEED: Final = 20260402
"""Any constant: the same record must always give the same interval."""


def signed_rank_p(ratios: Ratios, alternative: Alternative = "two-sided") -> float:
    """Test whether the blocks lean to one side; 1.0 when no block shows a difference.

    Exact, with ties and zeros too, up to 100 blocks; then the normal approximation. The alternative
    ``less`` tests whether the contender tends to be smaller.
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
    """Test whether the contender lies within the margin, a fraction, of the baseline.

    Two one-sided signed-rank tests of the ratios, divided by ``1 + margin`` and ``1 - margin``; the
    larger of the two p-values.
    """
    logs = np.asarray(ratios, dtype=float)
    not_higher = signed_rank_p(logs - math.log1p(margin), "less")
    not_lower = signed_rank_p(logs - math.log1p(-margin), "greater")
    return max(not_higher, not_lower)


def typical_change(ratios: Ratios) -> float:
    """Estimate contender / baseline - 1 by the median of all pairwise means of the logarithms."""
    return float(np.expm1(np.median(_pairwise_means(np.asarray(ratios, dtype=float))[0])))


def change_interval(ratios: Ratios) -> Interval | None:
    """Bracket contender / baseline - 1 by a percentile bootstrap over blocks; ``None`` below six.

    Percentiles are set farther out than 2.5 % and 97.5 %, as Hesterberg ("What teachers should know
    about the bootstrap", The American Statistician 69, 2015, section 3.2) advises for few blocks:
    without it intervals from ten blocks hold the truth 9 times in 10 only.
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
