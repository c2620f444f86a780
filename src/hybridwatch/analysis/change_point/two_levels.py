"""Does a level consist of two: do runs, or the trials within a run, fall on one of two levels?

The values of one level are split in two where the halves vary least (Otsu 1979). Noise of one mode
splits, too; what is left within its halves says whether it has two.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point.history import History
from hybridwatch.analysis.change_point.noise import Array

_FEWEST: Final = 20
_LEAST_SHARE: Final = 0.1
_LEAST: Final = 4
"""Values on either level: fewer are outliers."""
_RELEVANT: Final = 0.01
_REDUCTION: Final = 4.0
"""By how much a split reduces the variance of evenly spread values; of normal ones 2.75."""
_LUCK: Final = 60.0
"""Added over their number: few values split well by luck."""
_PURE: Final = 0.9
"""Share of a run's trials on one level from which on its start has chosen it."""


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """What falls on one of two levels.

    Attributes:
        low: The lower one, in the unit of the values.
        high: The higher one.
        share: Of what falls on the higher one.
        by_run: Whether a run as a whole falls on one; else each trial does.
    """

    low: float
    high: float
    share: float
    by_run: bool

    def text(self, write: Callable[[float], str]) -> str:
        """Say it in a sentence; ``write`` gives a level its unit."""
        what = "Runs fall" if self.by_run else "Trials within a run fall"
        why = "from start to start of the engine" if self.by_run else "from trial to trial"
        return (
            f"{what} on one of two levels, {write(self.low)} and "
            f"{write(self.high)} ({100 * self.share:.0f} % on the higher), {why}: what one run "
            "differs by may be this luck."
        )


def two_levels(runs: Sequence[Sequence[float] | Array], history: History) -> TwoLevels | None:
    """Say whether the present level of a series is two.

    Args:
        runs: The trials of each run, oldest first, or its median alone; positive.
        history: What was found in their medians.
    """
    ends = [point.last for point in history.points] + [drift.end for drift in history.drifts]
    present = [np.asarray(run, dtype=np.float64) for run in runs[max(ends, default=0) :]]
    if not present or min(run.min() for run in present) <= 0:
        return None
    values = np.concatenate(present)
    if values.size < _FEWEST:
        return None
    logs = np.log(values)
    border, reduction = _split(logs)
    above = logs > border
    if not _LEAST_SHARE <= above.mean() <= 1 - _LEAST_SHARE:
        return None
    low, high = float(np.median(values[~above])), float(np.median(values[above]))
    shares = [float((np.log(run) > border).mean()) for run in present]
    by_run = float(np.mean([max(share, 1 - share) for share in shares])) >= _PURE
    n = len(present) if by_run else values.size
    if math.log(high / low) < _RELEVANT or n < _FEWEST or reduction < _REDUCTION + _LUCK / n:
        return None
    return TwoLevels(low, high, float(above.mean()), by_run)


def _split(values: Array) -> tuple[float, float]:
    """Where values split best, and how much smaller their variance is within the halves."""
    ranked, n = np.sort(values), values.size
    below = np.arange(_LEAST, n - _LEAST + 1)
    sums = np.cumsum(ranked)
    gap = sums[below - 1] / below - (sums[-1] - sums[below - 1]) / (n - below)
    explained = gap**2 * below * (n - below) / n
    best = int(explained.argmax())
    total = float(((ranked - ranked.mean()) ** 2).sum())
    rest = max(total - float(explained[best]), np.finfo(float).tiny)
    at = int(below[best])
    return float(ranked[at - 1] + ranked[at]) / 2, total / rest if total > 0 else 1.0
