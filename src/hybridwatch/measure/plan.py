"""Which trials a session makes, and in which order."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from hybridwatch.record.run import Phase
from hybridwatch.scenario.scenario import TrialCounts


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial to make.

    Attributes:
        phase: What it is for.
        side: Index of the build.
        warmup: Not to be compared.
        number: Which trial of its phase and side, from 0.
    """

    phase: Phase
    side: int
    warmup: bool = False
    number: int = 0


EVERY_PHASE: Final = frozenset(Phase)


def plan(
    counts: TrialCounts, sides: int, phases: Collection[Phase] = EVERY_PHASE
) -> tuple[PlannedTrial, ...]:
    """Lay out a session.

    Right before fast: contracts, then accuracy, then times. Sides alternate as A B B A, so that a
    machine that drifts steadily slows both by the same amount. Each phase that is timed begins
    with a warm-up of each side.

    Args:
        counts: Trials of each phase and side.
        sides: How many.
        phases: What is wanted of it.
    """
    whole = (
        *_alternating(Phase.CONTRACT, sides, counts.contract),
        *_alternating(Phase.ACCURACY, sides, 1),
        *_warmups(Phase.PERFORMANCE, sides),
        *_alternating(Phase.PERFORMANCE, sides, counts.performance),
        *_warmups(Phase.HOST_SYNC, sides),
        *_alternating(Phase.HOST_SYNC, sides, counts.host_sync),
    )
    return tuple(trial for trial in whole if trial.phase in phases)


def _warmups(phase: Phase, sides: int) -> Iterator[PlannedTrial]:
    return (PlannedTrial(phase, side, warmup=True) for side in range(sides))


def _alternating(phase: Phase, sides: int, rounds: int) -> Iterator[PlannedTrial]:
    for number in range(rounds):
        order = range(sides) if number % 2 == 0 else reversed(range(sides))
        for side in order:
            yield PlannedTrial(phase, side, number=number)
