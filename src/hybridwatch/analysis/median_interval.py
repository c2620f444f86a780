"""Rule for two medians of which only an interval each was kept, as in asv's files without samples.

The limits of the change are recovered from those of both sides, each side's arm by itself, since
times are skewed (MOVER: Zou and Donner, "Construction of confidence limits about effect measures",
Statistics in Medicine 27, 2008). An interval of one run knows nothing of the next run, so the noise
between runs is added to it. Logarithms are supposed to be normal.
"""

import math
from dataclasses import dataclass
from typing import Final

from scipy import special

from hybridwatch.analysis.power import LEVEL, POWER
from hybridwatch.analysis.verdict import Interval

_CONFIDENCE: Final = 0.95
_ROUNDED: Final = 1e-5
"""Of a logarithm: asv keeps five digits of a limit."""


@dataclass(frozen=True, slots=True)
class MedianChange:
    """The logarithm of the change between two medians; its errors towards less and more."""

    change: float
    below: float
    above: float

    @property
    def p_value(self) -> float:
        """Of no change, two-sided."""
        error = self.below if self.change > 0 else self.above
        return float(2 * special.ndtr(-abs(self.change) / error))

    def equivalence_p(self, margin: float) -> float:
        """Of the two one-sided tests (Schuirmann 1987), the larger."""
        too_much = special.ndtr((self.change - math.log1p(margin)) / self.above)
        too_little = special.ndtr((math.log1p(-margin) - self.change) / self.below)
        return float(max(too_much, too_little))

    @property
    def interval(self) -> Interval:
        """Of the change as a fraction, 95 %."""
        reach = float(special.ndtri((1 + _CONFIDENCE) / 2))
        low, high = self.change - reach * self.below, self.change + reach * self.above
        return Interval(math.expm1(low), math.expm1(high), _CONFIDENCE)

    def detectable(self, bound: float) -> float:
        """Give the smallest change, a fraction, found to exceed ``bound`` 8 times in 10."""
        error, power = max(self.below, self.above), special.ndtri(POWER)
        tested = (special.ndtri(1 - LEVEL / 2) + power) * error
        return float(math.expm1(max(tested, math.log1p(bound) + power * error)))


def change_between(
    old: float, new: float, intervals: tuple[Interval, Interval], noise: float
) -> MedianChange:
    """Give the change from one run's positive median to another's; ``noise`` is between runs."""
    arms = [_arms(center, one) for center, one in zip((old, new), intervals, strict=True)]
    (old_below, old_above), (new_below, new_above) = arms
    between = math.sqrt(2) * noise
    return MedianChange(
        math.log(new / old),
        math.hypot(new_below, old_above, between, _ROUNDED),
        math.hypot(new_above, old_below, between, _ROUNDED),
    )


def _arms(center: float, interval: Interval) -> tuple[float, float]:
    reach = float(special.ndtri((1 + interval.confidence) / 2))
    below, above = math.log(center / interval.low), math.log(interval.high / center)
    return max(0.0, below) / reach, max(0.0, above) / reach
