"""Whether a row of numbers rises or falls, and by how much a step; outliers sway neither."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy import special

_EXACT: Final = 33
"""Beyond it the normal approximation is as good."""


def trend_p(values: Sequence[float]) -> float:
    """Test whether numbers rise or fall in the order they are given: Kendall's tau (1938).

    Exact without ties up to 33 numbers; then the normal approximation with tie correction.

    There are at least two numbers, not all equal.
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
    """Give the rise between every two numbers, and how many steps these are apart."""
    row = np.asarray(values, dtype=float)
    early, late = np.triu_indices(len(row), 1)
    return row[late] - row[early], late - early


def _inversions(n: int) -> Any:
    """Give the chances that a random order of ``n`` numbers has 0, 1, 2... pairs the wrong way."""
    likely = np.ones(1)
    for placed in range(2, n + 1):
        likely = np.convolve(likely, np.full(placed, 1 / placed))
    return likely
