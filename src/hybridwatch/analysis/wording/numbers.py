"""Numbers and names for people: the only place where seconds become milliseconds, bytes megabytes.

Everything inside is in base units at full precision; these texts are never parsed again.
"""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Interval
from hybridwatch.metrics import Kind, Metric, Unit

ABSENT: Final = "-"
"""Shown where there is no number; never a zero and never a gap."""

_DIGITS: Final = 3
_SECONDS: Final = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "\u00b5s"))
"""From which size on, by which factor, under which name."""
_BYTES: Final = ((1e9, 1e-9, "GB"), (1e6, 1e-6, "MB"), (1e3, 1e-3, "kB"), (0.0, 1.0, "bytes"))


def value(number: float | None, metric: Metric) -> str:
    """Write a value, given in the base unit: ``41.3 ms``, ``812 tok/s``, ``97.5 %``, ``3.25``."""
    if number is None or not math.isfinite(number):
        return ABSENT
    match metric.unit:
        case Unit.SECONDS:
            return duration(number)
        case Unit.RATIO:
            return f"{100 * number:.1f} %"
        case Unit.BYTES:
            return _scaled(number, _BYTES)
        case Unit.COUNT:
            return f"{number:.0f}" if number == round(number) else _rounded(number)
        case Unit.TOKENS_PER_SECOND | Unit.REQUESTS_PER_SECOND | Unit.STEPS_PER_SECOND:
            return f"{_rounded(number)} {metric.unit.value}"


def duration(seconds: float) -> str:
    """Write seconds with three digits in s, ms or microseconds."""
    if seconds == 0:
        return "0 s"
    return _scaled(seconds, _SECONDS)


def _scaled(number: float, scale: tuple[tuple[float, float, str], ...]) -> str:
    factor, name = next((factor, name) for least, factor, name in scale if abs(number) >= least)
    return f"{_rounded(number * factor)} {name}"


def change(comparison: Comparison) -> str:
    """Write the effect: ``+20.1 %``, ``-4.0 points`` of accuracy, ``+3`` exactly, ``-`` if none."""
    return effect(comparison.effect, comparison.metric.kind)


def effect(found: float | None, kind: Kind) -> str:
    """Write an effect, a relative change or a difference, as ``change`` does."""
    if found is None or not math.isfinite(found):
        return ABSENT
    if kind is Kind.EXACT:
        return f"{found:+g}" if found else "0"
    return f"{_signed(100 * found)} {kind.change_unit}"


def relative(fraction: float) -> str:
    """Write a relative change: ``-12.3 %``."""
    return f"{_signed(100 * fraction)} %"


def interval(comparison: Comparison) -> str:
    """Write the interval in per cent or points: ``+15.0 to +25.3``; empty if there is none."""
    found = comparison.interval
    if found is None or not (math.isfinite(found.low) and math.isfinite(found.high)):
        return ""
    return f"{_signed(100 * found.low)} to {_signed(100 * found.high)}"


def level_change(found: float, around: Interval, write: Callable[[float], str]) -> str:
    """Write the change of a level with its interval, the unit once: ``+5.1 % (+4.8 to +5.4)``."""
    low, high = (write(edge).removesuffix(" %") for edge in (around.low, around.high))
    return f"{write(found)} ({low} to {high})"


def in_own_unit(difference: float) -> str:
    """Write a difference of which nothing is known but the number."""
    return f"{difference:+.3g}"


def size(comparison: Comparison, fraction: float) -> str:
    """Write the size of a change without a sign: ``5.2 %`` or ``4.9 points``."""
    return f"{100 * fraction:.1f} {comparison.metric.kind.change_unit}"


def p_value(p: float | None) -> str:
    """Write a p-value with three decimals, small ones as ``<0.001``."""
    if p is None or not math.isfinite(p):
        return ABSENT
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def n(comparison: Comparison) -> str:
    """Write how many trials (or documents) stand on each side: ``7``, or ``7/6``."""
    sides = (comparison.baseline, comparison.contender)
    left, right = (summary.n if summary else 0 for summary in sides)
    return str(left) if left == right else f"{left}/{right}"


def _signed(value: float) -> str:
    # Rounded first: -0.04 would read "-0.0", a direction that is not there.
    rounded = round(value, 1)
    return f"{rounded:+.1f}" if rounded else "0.0"


def _rounded(value: float) -> str:
    """Write three significant digits without an exponent, and whole numbers in full."""
    if value == 0:
        return "0"
    decimals = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):.{max(0, decimals)}f}" if abs(value) < 1000 else f"{value:.0f}"


def age(moment: datetime, now: datetime) -> str:
    """Say how long ago something was: ``3 h ago``; of the future (a wrong clock) ``just now``."""
    seconds = (now - moment).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


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
    written = f"{change(comparison)} {describe_basis(comparison)}".rstrip()
    around = interval(comparison)
    return f"{written} ({around})" if around else written


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
    left, right = (value(side.center if side else None, comparison.metric) for side in sides)
    return left, right
