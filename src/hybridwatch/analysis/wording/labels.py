"""How a comparison is named and its numbers are written, for every sentence and every table."""

from typing import Final

from hybridwatch.analysis.verdict import Comparison
from hybridwatch.analysis.wording import numbers

WORTHWHILE_TRIALS: Final = 100
"""A side, the most that are worth recommending: ten of a smoke scenario take some four minutes, so
this is most of an hour, and beyond it a quieter machine settles more than patience."""
MOST_TRIALS: Final = 1000
"""A side, the most that one run makes."""
PAIRED: Final = "pair by pair"
"""Stands behind a change that is not that of the two medians next to it."""
_ROUNDING: Final = 0.005
"""What is lost of a number that is written with three digits, as a fraction."""
_ALIKE: Final = 0.2
"""Two sizes that differ by a smaller share of the larger mean the same to a reader."""


def name_of(comparison: Comparison) -> str:
    """Name a comparison: the metric, and the statistic where a metric has more than one."""
    return comparison.metric.label(comparison.statistic)


def describe_change(comparison: Comparison) -> str:
    """Write a change with its interval and its basis: ``+20.1 % (+15.0 to +25.3)``."""
    change = f"{numbers.change(comparison)} {describe_basis(comparison)}".rstrip()
    interval = numbers.interval(comparison)
    return f"{change} ({interval})" if interval else change


def describe_basis(comparison: Comparison) -> str:
    """Say ``PAIRED`` where the centers of both sides tell another story than the change.

    Of paired trials the change is the typical one within a pair. A machine that drifts can move the
    medians of all trials by another amount, or the other way.
    """
    old, new, effect = comparison.baseline, comparison.contender, comparison.effect
    if not comparison.ratios or old is None or new is None or effect is None or not old.center:
        return ""
    shown = new.center / old.center - 1
    signs = {number > 0 for number in (round(shown, 3), round(effect, 3)) if number}
    far = abs(shown - effect) > max(_ROUNDING, _ALIKE * max(abs(shown), abs(effect)))
    return PAIRED if len(signs) > 1 or far else ""


def plural(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 test``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_centers(comparison: Comparison) -> tuple[str, str]:
    """Write the centers of both sides with their unit, ``-`` where a side has none."""
    sides = (comparison.baseline, comparison.contender)
    left, right = (
        numbers.value(side.center if side else None, comparison.metric) for side in sides
    )
    return left, right
