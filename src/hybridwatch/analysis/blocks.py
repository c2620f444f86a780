"""Which trial of one side belongs to which of the other.

Sides that are measured in turn, A B B A, form blocks: the k-th planned trial of each. The two of a
block lie close in time and share what the machine is up to, so that a block's ratio is free of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.records.run import Phase, Trial


@dataclass(frozen=True, slots=True)
class Blocks:
    """Both sides of a metric, block by block.

    Attributes:
        baseline: One number per whole block, in order of measurement; base units.
        contender: The same of the other side.
        planned: Blocks begun, those included in which a side failed or gave no finite value.
    """

    baseline: tuple[float, ...]
    contender: tuple[float, ...]
    planned: int

    @property
    def n(self) -> int:
        """Whole blocks."""
        return len(self.baseline)

    @property
    def has_ratios(self) -> bool:
        """Whether every number is positive, so that a ratio exists."""
        return min(*self.baseline, *self.contender, np.inf) > 0

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """Logarithm of contender / baseline of each block."""
        # A difference of logarithms, so that 3 -> 4 and 4 -> 3 are exact opposites.
        return tuple((np.log(self.contender) - np.log(self.baseline)).tolist())


def blocks_of(
    baseline: OneSide,
    contender: OneSide,
    phase: Phase,
    old: Mapping[int, float],
    new: Mapping[int, float],
) -> Blocks | None:
    """Pair the trials of two sides.

    Args:
        baseline: First side.
        contender: Second side.
        phase: Whose trials.
        old: The number of each of the baseline's trials that has one, by its index.
        new: The same of the contender.

    Returns:
        The blocks; ``None`` when the sides are of different runs, or were not measured in turn.
    """
    if baseline.run.id != contender.run.id or baseline.index == contender.index:
        return None
    left, right = baseline.planned(phase), contender.planned(phase)
    if not _in_turn(left, right):
        return None
    pairs = [(old.get(a.index), new.get(b.index)) for a, b in zip(left, right, strict=False)]
    whole = [(a, b) for a, b in pairs if a is not None and b is not None]
    return Blocks(
        tuple(a for a, _ in whole), tuple(b for _, b in whole), max(len(left), len(right))
    )


def _in_turn(left: tuple[Trial, ...], right: tuple[Trial, ...]) -> bool:
    """Say whether no other trial of the two sides lies between the two of a block."""
    order = sorted(trial.index for trial in (*left, *right))
    place = {index: at for at, index in enumerate(order)}
    return all(abs(place[a.index] - place[b.index]) == 1 for a, b in zip(left, right, strict=False))
