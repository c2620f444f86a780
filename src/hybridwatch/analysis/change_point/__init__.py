"""The history of one metric: where did its level change, and by how much?

``examine`` is the way in, ``find_onset`` finds since when a run is bad that is known to be,
``two_levels`` whether a level is two. Nothing is tuned by the caller: what counts as a change is
fixed by ``scan.needed`` and measured by ``python -m hybridwatch_lab.calibration``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hybridwatch.analysis.verdict import Interval

NOT_ONE_COMMIT: Final = "no single commit is to blame: look for a slow cause, and at the machine"
"""Of what came slowly."""


class HistoryState(StrEnum):
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
        first: Earliest point of the range that holds the true ``index`` with 95 %; ``last`` is the
            latest. The cause lies between the run before ``first`` and ``last``.
    """

    index: int
    effect: float
    interval: Interval
    state: HistoryState
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Drift:
    """A level that moves along a straight line rather than steps: no single run is to blame.

    Attributes:
        index: First point that has moved; ``first`` to ``last`` holds the true one with 95 %.
        end: Point at which it stands still again, or the last of the series.
        effect: How far it leads in all, in the unit of ``ChangePoint.effect``.
    """

    index: int
    first: int
    last: int
    end: int
    effect: float

    @property
    def per_point(self) -> float:
        """How far it leads from one point to the next, on average."""
        return self.effect / (self.end - self.index)


@dataclass(frozen=True, slots=True)
class History:
    """What there is to say of a series; no change point is in a drift; both oldest first."""

    points: tuple[ChangePoint, ...] = ()
    drifts: tuple[Drift, ...] = ()
    doubts: tuple[str, ...] = ()


def describe_drifts(history: History, moments: Sequence[str], *, is_ratio: bool) -> Iterator[str]:
    """Say each drift in a sentence; if ``is_ratio``, effects are shares of the level."""

    def size(effect: float, digits: int) -> str:
        return f"{effect:+.{digits}%}".replace("%", " %") if is_ratio else f"{effect:+.3g}"

    for drift in history.drifts:
        since, first, last = (moments[at] for at in (drift.index, drift.first, drift.last))
        goes_on = drift.end == len(moments) - 1
        yield (
            f"The level {'drifts' if goes_on else 'drifted'} by {size(drift.per_point, 2)} a run "
            f"since about {since} ({first} to {last}, 95 %)"
            f"{'' if goes_on else f' until about {moments[drift.end]}'}, {size(drift.effect, 1)} "
            f"in all; {NOT_ONE_COMMIT}."
        )
