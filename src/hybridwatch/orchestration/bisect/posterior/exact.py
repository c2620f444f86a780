"""Plain bisection, where one measurement of a position tells on which side of the change it lies.

A position that gives no answer is left out. The next one is the middle of those that are still to
be asked, not the middle of the list, so that n positions take no more than log2(n) answers however
many are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from hybridwatch.errors import LostProbeError


class ProbeAnswer(Enum):
    """On which side of the change a position lies."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    SKIPPED = "skipped"
    """It cannot be measured, or says neither."""


@dataclass(frozen=True, slots=True)
class Bracket:
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

    def after(self, at: int, answer: ProbeAnswer) -> "Bracket":
        """Learn the answer of an open position."""
        match answer:
            case ProbeAnswer.UNCHANGED:
                return replace(self, good=at)
            case ProbeAnswer.CHANGED:
                return replace(self, bad=at)
            case ProbeAnswer.SKIPPED:
                return replace(self, skipped=self.skipped | {at})


def next_position(place: Bracket) -> int | None:
    """Give the position to ask next; ``None`` when none would say more.

    Of two in the middle the later one: what was wrong for long is rarely looked for.
    """
    return place.open[len(place.open) // 2] if place.open else None


def next_positions(place: Bracket, most: int) -> tuple[int, ...]:
    """Give the position to ask next, then those that may come after it, whatever it answers.

    At most ``most`` can be measured at a time; those that are certain to be worth more come first.
    """
    found: list[int] = []
    level = [place]
    while level and len(found) < most:
        asked = [(one, at) for one in level if (at := next_position(one)) is not None]
        found += [at for _, at in asked]
        level = [one.after(at, side) for one, at in asked for side in _SIDES]
    return tuple(found[:most])


_SIDES = (ProbeAnswer.CHANGED, ProbeAnswer.UNCHANGED)


def _one_at_a_time(_: Bracket) -> None:
    """Measure nothing ahead."""


def find_exact(
    last: int,
    ask: Callable[[int], ProbeAnswer],
    may_go_on: Callable[[], bool] = lambda: True,
    expect: Callable[[Bracket], None] = _one_at_a_time,
) -> Bracket:
    """Find a change between position 0, which is unchanged, and the last one, which is changed.

    ``last``, the bad end, is 1 or more. ``ask`` measures a position; it raises ``LostProbeError``
    when nothing can be measured any more. ``expect`` is given what is known before each position is
    asked for, so that what may come next can be measured meanwhile. The change is at one position,
    or at more if what lies between gave no answer.
    """
    place = Bracket(0, last)
    while (at := next_position(place)) is not None and may_go_on():
        try:
            expect(place)
            place = place.after(at, ask(at))
        except LostProbeError:
            break
    return place
