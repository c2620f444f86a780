"""Exact null distributions of rank sums, ties included.

The shift algorithm (Streitberg and Roehmel, "Exact distributions for permutation and rank tests",
Statistical Software Newsletter 12, 1986) counts subsets of ranks by their sum instead of one by
one. SciPy's closed forms know no ties, and its permutations take too long from 14 numbers on.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

Alternative = Literal["two-sided", "less", "greater"]


def rank_sum_p(
    ranks: Sequence[int], seen: int, alternative: Alternative, size: int | None = None
) -> float:
    """Tell how often a random subset of ranks has a sum as extreme as the one seen.

    Args:
        ranks: Whole numbers of 0 and more, such as doubled midranks.
        seen: The sum of the subset that was seen.
        alternative: ``less`` asks how often the sum is as small, ``two-sided`` doubles the
            smaller tail.
        size: How many ranks a subset holds, each subset being equally likely (two samples);
            ``None`` draws every rank with probability 1/2 (signs).
    """
    share = _shares(ranks, size)
    less, greater = float(share[: seen + 1].sum()), float(share[seen:].sum())
    match alternative:
        case "less":
            return min(1.0, less)
        case "greater":
            return min(1.0, greater)
        case "two-sided":
            return min(1.0, 2 * less, 2 * greater)


def _shares(ranks: Sequence[int], size: int | None) -> Any:
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
