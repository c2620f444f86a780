"""The outcome of a measurement, the goal of a search, and on which side of it an outcome lies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from hybridwatch.errors import ComparisonError, LostProbeError
from hybridwatch.metrics import Kind, find_metric, list_metrics
from hybridwatch.scenarios.validation import closest


class ProbeState(Enum):
    """How a measurement ended."""

    MEASURED = "measured"
    NOT_UP = "does not start"
    """The engine does not come up for the scenario."""
    DIES = "dies"
    """It comes up, and ends in the scenario."""
    NO_VALUE = "gave no measurement"
    """The engine lives, and a trial could not be measured."""
    NOT_HAD = "cannot be had"
    """There is no such build here, or its engine was not up in time."""


class ProbeOutcome(BaseModel):
    """One measurement.

    Attributes:
        reason: Why there is none, in a line.
        label: The build, as its engine reported it.
        run: Id of the run that it was read from; empty when there is none.
        counts: Worst trial of each exact metric.
        ratios: Log ratio of each block of the timed ``metric`` against the first candidate.
        block_minutes: What a block took, and of a duet the start of its engines.
        doubts: Of a timed one, what is held against the machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: ProbeState
    reason: str = ""
    label: str = ""
    run: str = ""
    counts: dict[str, float] = Field(default_factory=dict)
    metric: str = ""
    ratios: tuple[float, ...] = ()
    minutes: float = 0.0
    block_minutes: float = 0.0
    doubts: tuple[str, ...] = ()


class ProbeAnswer(Enum):
    """On which side of the change a position lies."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    SKIPPED = "skipped"
    """It cannot be measured, or says neither."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """The change lies after ``good`` and up to ``bad``; positions in ``skipped`` gave no answer."""

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
    """The middle one; of two the later: what was wrong for long is rarely looked for."""
    return place.open[len(place.open) // 2] if place.open else None


def next_positions(place: Bracket, most: int) -> tuple[int, ...]:
    """At most ``most`` positions to measure next: those certain to be worth more come first."""
    found: list[int] = []
    level = [place]
    while level and len(found) < most:
        pending = [(one, at) for one in level if (at := next_position(one)) is not None]
        found += [at for _, at in pending]
        level = [one.after(at, side) for one, at in pending for side in _SIDES]
    return tuple(found[:most])


_SIDES = (ProbeAnswer.CHANGED, ProbeAnswer.UNCHANGED)


def find_exact(
    last: int,
    measure: Callable[[int], ProbeAnswer],
    may_go_on: Callable[[], bool] = lambda: True,
    expect: Callable[[Bracket], None] = lambda _: None,
) -> Bracket:
    """Find a change between position 0, which is unchanged, and the last one, which is changed.

    ``expect`` is given what is known before each position is measured, so that what may come next
    can be measured meanwhile. What lies in the bracket still gave no answer.
    """
    place = Bracket(0, last)
    while (at := next_position(place)) is not None and may_go_on():
        try:
            expect(place)
            place = place.after(at, measure(at))
        except LostProbeError:
            break
    return place


STARTS: Final = "starts"
"""Whether the engine starts for the scenario; named like a metric."""
ALIVE: Final = "alive"
"""Whether it comes up and lives to the scenario's end; likewise."""
_DEAD: Final = {STARTS: {ProbeState.NOT_UP}, ALIVE: {ProbeState.NOT_UP, ProbeState.DIES}}
"""What counts as no."""


class ChangeDirection(Enum):
    """Which way the change went."""

    REGRESSION = "regression"
    FIX = "fix"


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """A change between the ends of a list, without noise; of ``starts`` and ``alive`` 1 is yes."""

    metric: str
    wanted: ChangeDirection
    first: float
    last: float

    def answer(self, outcome: ProbeOutcome) -> ProbeAnswer:
        """Say on which side of the change a measurement lies: as good as the better end, or not.

        Between the ends the engine may break a rule more often or less.
        """
        value = find_value(outcome, self.metric)
        if value is None:
            return ProbeAnswer.SKIPPED
        is_good = value <= min(self.first, self.last)
        if is_of_life(self.metric):
            is_good = bool(value)
        return (
            ProbeAnswer.CHANGED
            if is_good is (self.wanted is ChangeDirection.FIX)
            else ProbeAnswer.UNCHANGED
        )


def require_metric(metric: str) -> None:
    """Refuse what a search cannot look for."""
    if is_of_life(metric):
        return
    try:
        kind = find_metric(metric).kind
    except KeyError:
        raise ComparisonError(
            f"--metric: expected {STARTS}, {ALIVE} or the id of a metric, found {metric!r}; "
            f"{closest(metric, tuple(one.id for one in list_metrics()))}"
        ) from None
    if kind is Kind.PROPORTION:
        raise ComparisonError(
            f"--metric: expected a contract, a time, a rate, {STARTS} or {ALIVE}, found {metric}: "
            "contract.wrong_answers counts wrong answers one by one"
        )


def is_exact(metric: str) -> bool:
    """Whether one measurement decides, without noise."""
    return is_of_life(metric) or find_metric(metric).kind is Kind.EXACT


def is_of_life(metric: str) -> bool:
    """Whether it is about the engine itself, yes or no, and no metric."""
    return metric in _DEAD


def find_value(outcome: ProbeOutcome, metric: str) -> float | None:
    """Give what a measurement says of a metric; ``None`` when it says nothing."""
    if outcome.state is ProbeState.NOT_HAD:
        return None
    if is_of_life(metric):
        return float(outcome.state not in _DEAD[metric])
    return outcome.counts.get(metric)


def exact_question(
    first: ProbeOutcome,
    last: ProbeOutcome,
    wanted: ChangeDirection,
    metric: str,
    order: Sequence[str],
) -> ExactQuestion | None:
    """Find what changed between the ends; ``None`` when nothing changed that way.

    An empty ``metric`` is any that changed that way. Contracts of ``order`` come before others.
    """
    both = sorted(first.counts.keys() & last.counts.keys())
    ordered = [one for one in order if one in both], [one for one in both if one not in order]
    for name in (metric,) if metric else (*_DEAD, *ordered[0], *ordered[1]):
        values = find_value(first, name), find_value(last, name)
        if None in values:
            continue
        old, new = (value or 0.0 for value in values)
        worse = new < old if is_of_life(name) else new > old
        if old != new and worse is (wanted is ChangeDirection.REGRESSION):
            return ExactQuestion(name, wanted, old, new)
    return None
