"""Does a level consist of two: do runs, or the trials within a run, fall on one of two levels?

The values of one level are split in two where the halves vary least (Otsu 1979), the extremes left
out. Noise of one mode splits, too, but it has no valley: halfway between two levels there are never
fewer values than at both. How clearly there are is counted in standard deviations over runs, whose
trials are alike. Of runs the halves must also vary much less than the whole does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point.history import History
from hybridwatch.analysis.change_point.noise import Array

_FEWEST: Final = 20
"""Runs."""
_LEAST_SHARE: Final = 0.2
"""Of what falls on either level: fewer are slow nights."""
_LEAST: Final = 4
"""Values on either level that a split leaves."""
_EXTREMES: Final = 0.05
"""Share of values on either side that are not asked where to split."""
_RELEVANT: Final = 0.01
_VALLEY: Final = 2.4
"""Standard deviations by which there are fewer values between the levels than at one."""
_WINDOW: Final = 1 / 3
"""Of the distance between the levels: how far apart values are counted as being at one place."""
_REDUCTION: Final = 4.0
"""By how much a split reduces the variance of evenly spread values; of normal ones 2.75."""
_LUCK: Final = 60.0
"""Added over their number: few values split well by luck."""
_PURE: Final = 0.8
"""Share of a run's trials on one level from which on its start has chosen it."""


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """What falls on one of two levels.

    Attributes:
        low: The lower one, in the unit of the values.
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

    ``runs`` has the trials of each run, oldest first, or its median alone; positive. ``history`` is
    what was found in their medians.
    """
    ends = [point.last for point in history.points] + [drift.end for drift in history.drifts]
    present = [np.asarray(run, dtype=np.float64) for run in runs[max(ends, default=0) :]]
    if len(present) < _FEWEST or min(run.min() for run in present) <= 0:
        return None
    logs = [np.log(run) for run in present]
    return _told(logs, by_run=True) or _told(logs, by_run=False)


def _told(trials: Sequence[Array], *, by_run: bool) -> TwoLevels | None:
    runs = [np.atleast_1d(np.median(run)) for run in trials] if by_run else trials
    values = np.concatenate(runs)
    border, reduction = _split(values)
    above = values > border
    if not _LEAST_SHARE <= above.mean() <= 1 - _LEAST_SHARE:
        return None
    low, high = float(np.median(values[~above])), float(np.median(values[above]))
    shares = [float((run > border).mean()) for run in trials]
    is_pure = float(np.mean([max(share, 1 - share) for share in shares])) >= _PURE
    if by_run != is_pure or (by_run and reduction < _REDUCTION + _LUCK / len(runs)):
        return None
    if high - low < _RELEVANT or _valley(runs, low, high) < _VALLEY:
        return None
    return TwoLevels(math.exp(low), math.exp(high), float(above.mean()), by_run)


def _valley(runs: Sequence[Array], low: float, high: float) -> float:
    """Say how much fewer values lie between two levels than at the emptier one of them."""
    places = np.array([low, (low + high) / 2, high])
    near = _WINDOW * (high - low) / 2
    counts = np.array([(np.abs(run - places[:, None]) < near).sum(axis=1) for run in runs])
    emptier = 0 if counts[:, 0].sum() < counts[:, 2].sum() else 2
    missing = counts[:, emptier] - counts[:, 1]
    return float(missing.sum() / math.sqrt(max(float(missing @ missing), 1.0)))


def _split(values: Array) -> tuple[float, float]:
    """Where values split best, and how much smaller their variance is within the halves."""
    ranked, extremes = np.sort(values), int(_EXTREMES * values.size)
    ranked = ranked[extremes : values.size - extremes]
    n = ranked.size
    below = np.arange(_LEAST, n - _LEAST + 1)
    sums = np.cumsum(ranked)
    gap = sums[below - 1] / below - (sums[-1] - sums[below - 1]) / (n - below)
    explained = gap**2 * below * (n - below) / n
    best = int(explained.argmax())
    total = float(((ranked - ranked.mean()) ** 2).sum())
    rest = max(total - float(explained[best]), np.finfo(float).tiny)
    at = int(below[best])
    return float(ranked[at - 1] + ranked[at]) / 2, total / rest if total > 0 else 1.0
