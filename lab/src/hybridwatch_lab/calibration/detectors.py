"""What the history experiments ask: a detector, ours or another's, as one function."""

from collections.abc import Callable
from dataclasses import dataclass

from hybridwatch.analysis.change_point import HistoryState
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch_lab.calibration.noise import Array


@dataclass(frozen=True, slots=True, order=True)
class Alarm:
    """A claim that the level changed.

    Attributes:
        index: First point of the new level.
        confirmed: Whether the detector stands by it; ``False`` for a suspicion.
    """

    index: int
    confirmed: bool = True


Detector = Callable[[Array], tuple[Alarm, ...]]
"""Takes the values of a series up to now, oldest first."""


def ours(values: Array) -> tuple[Alarm, ...]:
    """Ask the shipped detector, telling it nothing but the values."""
    return tuple(
        Alarm(point.index, point.state is HistoryState.CONFIRMED)
        for point in examine(values).points
    )
