"""Null distributions of rank sums, ties included: exact, and beyond many ranks normal.

The shift algorithm (Streitberg and Roehmel, "Exact distributions for permutation and rank tests",
Statistical Software Newsletter 12, 1986) counts subsets of ranks by their sum instead of one by
one. SciPy's closed forms know no ties, and its permutations take too long from 14 numbers on.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

Ranks = npt.NDArray[np.int64]
Alternative = Literal["two-sided", "less", "greater"]


def doubled_midranks(values: Sequence[float] | npt.NDArray[np.float64]) -> Ranks:
    """Give twice the rank of each number, whole also where equal ones share their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    doubled: Ranks = 2 * np.cumsum(counts) - counts + 1
    return doubled[group]


def rank_sum_p(ranks: Ranks, seen: int, alternative: Alternative, size: int | None = None) -> float:
    """Tell how often a random subset of ranks has a sum as extreme as the one seen.

    Args:
        ranks: Whole numbers of 0 and more, such as doubled midranks.
        seen: The sum of the subset that was seen.
        alternative: ``less`` asks how often the sum is as small, ``two-sided`` doubles the
            smaller tail.
        size: How many ranks a subset holds, each subset being equally likely (two samples);
            ``None`` draws every rank with probability 1/2 (signs).
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
    """Tell nearly the same as ``rank_sum_p`` in no time: the sum's distribution is near normal.

    Args:
        ranks: As there.
        seen: As there.
        alternative: As there.
        size: As there.
        continuity: Half the distance between possible sums, to count the one seen wholly.
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
