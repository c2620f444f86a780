"""Finding where a function crosses zero. SciPy's own search takes longer to import than to run."""

from collections.abc import Callable
from typing import Final

_PRECISION: Final = 1e-12


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the place between two others at which a function crosses zero, to 1e-12.

    It has different signs at ``low`` and at ``high``, and crosses zero once between them.
    """
    below = function(low) > 0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if (function(middle) > 0) == below:
            low = middle
        else:
            high = middle
    return (low + high) / 2
