"""Plain bisection, where one measurement of a position tells on which side of the change it lies.

A position that gives no answer is left out. The next one is the middle of those that are still to
be asked, not the middle of the list, so that n positions take no more than log2(n) answers however
many are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum


class Answer(Enum):
    """On which side of the change a position lies."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    SKIPPED = "skipped"
    """It cannot be measured, or says neither."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of where the change is.

    Attributes:
        good: The last position that is known to be unchanged.
        bad: The first that is known to be changed.
        skipped: Positions that gave no answer.
    """

    good: int
    bad: int
    skipped: frozenset[int] = frozenset()

    @property
    def is_found(self) -> bool:
        """Whether the change is one position."""
        return self.bad - self.good == 1

    @property
    def open(self) -> tuple[int, ...]:
        """Positions that would say more."""
        return tuple(at for at in range(self.good + 1, self.bad) if at not in self.skipped)

    def after(self, at: int, answer: Answer) -> "Place":
        """Learn the answer of an open position."""
        match answer:
            case Answer.UNCHANGED:
                return replace(self, good=at)
            case Answer.CHANGED:
                return replace(self, bad=at)
            case Answer.SKIPPED:
                return replace(self, skipped=self.skipped | {at})


def next_position(place: Place) -> int | None:
    """Give the position to ask next; ``None`` when none would say more.

    Of two in the middle the later one: what was wrong for long is rarely looked for.
    """
    return place.open[len(place.open) // 2] if place.open else None


def find_exact(
    last: int, ask: Callable[[int], Answer], may_go_on: Callable[[], bool] = lambda: True
) -> Place:
    """Find a change between position 0, which is unchanged, and the last one, which is changed.

    Args:
        last: The bad end; 1 or more.
        ask: Measures a position.
        may_go_on: Whether there is time for another one.

    Returns:
        Where the change is: one position, or more if what lies between gave no answer.
    """
    place = Place(0, last)
    while (at := next_position(place)) is not None and may_go_on():
        place = place.after(at, ask(at))
    return place
