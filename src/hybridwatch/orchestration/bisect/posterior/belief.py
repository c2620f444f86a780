"""How likely each position is to be the change, after noisy measurements."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CONFIDENCE: Final = 0.99
"""How likely the named range has to hold the change: a wrong name costs its author a day."""


@dataclass(frozen=True, slots=True)
class Range:
    """Positions one of which is the change.

    Attributes:
        good: The position before the first of them.
        bad: The last of them.
        mass: How likely it is that the change is among them.
    """

    good: int
    bad: int
    mass: float


@dataclass(frozen=True, slots=True)
class Belief:
    """A probability for each position from 1, the first after the good end, to the bad end.

    How large the change is and how far measurements scatter is not known for sure either, and what
    one measurement says of that counts for all others. So there is a probability for each position
    together with each of these.

    Attributes:
        joint: The probabilities; a row for each position, a column for each size and scatter.
        skipped: Positions that cannot be measured. One of them may be the change, but nothing
            distinguishes it from the next one that can.
    """

    joint: Array
    skipped: frozenset[int] = field(default_factory=frozenset)

    @property
    def masses(self) -> Array:
        """The probability of each position; the first is that of position 1."""
        whole: Array = self.joint.sum(axis=1)
        return whole

    @property
    def columns(self) -> Array:
        """The probability of each column."""
        found: Array = self.joint.sum(axis=0)
        return found

    @property
    def last(self) -> int:
        """The bad end."""
        return len(self.joint)

    @property
    def open(self) -> tuple[int, ...]:
        """Positions that can be measured, without the ends."""
        return tuple(at for at in range(1, self.last) if at not in self.skipped)

    def changed_at(self, positions: Sequence[int]) -> Array:
        """How likely each position is changed: the change is there or before it."""
        return np.cumsum(self.masses)[np.asarray(positions, dtype=np.int64) - 1]

    def after(self, at: int, if_unchanged: Array, if_changed: Array, beside: int = 0) -> "Belief":
        """Learn a measurement (Bayes' rule).

        Args:
            at: What was measured.
            if_unchanged: Logarithms of how likely the measurement is if the change does not lie
                between the two that were measured, for each column.
            if_changed: The same if it does.
            beside: The earlier position that it was measured against; 0 is the good end.
        """
        positions = np.arange(1, self.last + 1)[:, None]
        is_between = (beside < positions) & (positions <= at)
        likely = np.where(is_between, if_changed, if_unchanged)
        weights = self.joint * np.exp(likely - likely.max())
        return replace(self, joint=weights / weights.sum())

    def without(self, at: int) -> "Belief":
        """Learn that a position cannot be measured."""
        return replace(self, skipped=self.skipped | {at})

    def ranges(self) -> tuple[Range, ...]:
        """Give the ranges within which no measurement could distinguish positions."""
        ends = (0, *self.open, self.last)
        return tuple(self._range(low, high) for low, high in pairwise(ends))

    def best(self) -> Range:
        """Give the most likely range that cannot be divided further."""
        return max(self.ranges(), key=lambda one: one.mass)

    def credible(self, confidence: float = CONFIDENCE) -> Range:
        """Give the shortest range that is as likely as wanted to hold the change.

        It begins and ends at positions that can be measured. Of several the likeliest.
        """
        ends = (0, *self.open, self.last)
        found = (self._range(low, high) for at, low in enumerate(ends) for high in ends[at + 1 :])
        wide = [one for one in found if one.mass >= confidence - 1e-9]
        return min(wide, key=lambda one: (one.bad - one.good, -one.mass))

    def _range(self, low: int, high: int) -> Range:
        return Range(low, high, float(self.joint[low:high].sum()))


def build_belief(weights: Sequence[float], columns: Sequence[float] = (1.0,)) -> Belief:
    """Begin with what is known before anything is measured.

    ``weights`` say how likely each position is to be the change, the bad end last, and ``columns``
    how likely each size and scatter is; both in any unit.
    """
    found = np.outer(np.asarray(weights, dtype=np.float64), np.asarray(columns, dtype=np.float64))
    return Belief(found / found.sum())
