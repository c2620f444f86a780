"""Finding where a function crosses zero. SciPy's own search takes longer to import than to run."""

from collections.abc import Callable
from typing import Final

_PRECISION: Final = 1e-12


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the place between two others at which a function crosses zero.

    Args:
        function: Has different signs at the two, and crosses zero once between them.
        low: One of them.
        high: The other, above it.

    Returns:
        The place, to 1e-12.
    """
    below = function(low) > 0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if (function(middle) > 0) == below:
            low = middle
        else:
            high = middle
    return (low + high) / 2
