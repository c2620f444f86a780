"""How sure one can be of a ratio that was measured in rounds, one value of each side in each."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95
_SEED: Final = 20260522


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """The median over rounds, and the interval that would hold it in 95 of 100 repetitions."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """For JSON."""
        return {"ratio": self.value, "low": self.low, "high": self.high}


def paired_ratio(contender: Sequence[float], baseline: Sequence[float]) -> RatioInterval:
    """One side over the other, round by round, so that what drifts hits both alike.

    The interval is a percentile bootstrap of the median over rounds, drawn with a fixed seed.

    Raises:
        ValueError: There is no round, or one side has more rounds than the other.
    """
    ratios = [one / other for one, other in zip(contender, baseline, strict=True)]
    if not ratios:
        raise ValueError("expected at least one round, found none")
    rng = random.Random(_SEED)  # noqa: S311 - repeatable is what is wanted
    medians = sorted(median(rng.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return RatioInterval(median(ratios), medians[tail], medians[-1 - tail])
