"""How a comparison is named and its numbers are written, for every sentence and every table."""

from hybridwatch.analysis.verdict import Comparison
from hybridwatch.wording import numbers


def name_of(comparison: Comparison) -> str:
    """Name a comparison: the metric, and the statistic where a metric has more than one."""
    return comparison.metric.label(comparison.statistic)


def change_of(comparison: Comparison) -> str:
    """Write the change with its interval: ``+20.1 % (+15.0 to +25.3)``."""
    change = numbers.change(comparison)
    interval = numbers.interval(comparison)
    return f"{change} ({interval})" if interval else change


def plural(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 test``, ``2 tests``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def centers_of(comparison: Comparison) -> tuple[str, str]:
    """Write the centers of both sides with their unit, ``-`` where a side has none."""
    sides = (comparison.baseline, comparison.contender)
    left, right = (
        numbers.value(side.center if side else None, comparison.metric) for side in sides
    )
    return left, right
