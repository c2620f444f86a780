"""One false-discovery control for all tests of a report.

Without it a report of twenty tests cries wolf about every second time even when nothing changed.
Benjamini-Hochberg (1995) holds for independent tests and for the positive dependence that
latencies of the same requests have (Benjamini and Yekutieli 2001).
"""

from collections.abc import Sequence
from typing import Final

from scipy import stats

FALSE_DISCOVERY_RATE: Final = 0.05


def adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values, so that those below the rate can be called discoveries.

    Args:
        p_values: Every two-sided p-value of one report, in any order.

    Returns:
        The adjusted values, in the same order.
    """
    if not p_values:
        return ()
    return tuple(float(p) for p in stats.false_discovery_control(p_values, method="bh"))
