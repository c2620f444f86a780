"""Words for what is found in a history."""

from dataclasses import dataclass
from enum import StrEnum

from hybridwatch.analysis.verdict import Interval


class State(StrEnum):
    """How sure a change point is; a text, since readers of JSON and of tables compare it as one."""

    SUSPECTED = "suspected"
    """Beyond noise, but young or barely so: look again after the next points."""
    CONFIRMED = "confirmed"
    """Enough points stand on the new level, clearly."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """One change of level.

    Attributes:
        index: First point of the new level.
        effect: New level / old level - 1; the difference of the levels for proportions, exact
            metrics and series that are not positive throughout.
        interval: 95 % around ``effect``, widened where neighbouring points resemble each other.
        state: Whether it may still turn out to be noise.
    """

    index: int
    effect: float
    interval: Interval
    state: State


@dataclass(frozen=True, slots=True)
class History:
    """What there is to say of a series.

    Attributes:
        points: Change points, oldest first.
        drift: How far the present level has wandered along a straight line since the last change
            point, in the unit of ``ChangePoint.effect``; ``None`` when it does not.
        doubts: What a reader should hold against it, each with what to do about it.
    """

    points: tuple[ChangePoint, ...] = ()
    drift: float | None = None
    doubts: tuple[str, ...] = ()
