"""Which trials a session makes, and in which order."""

from collections.abc import Iterator
from dataclasses import dataclass

from hybridwatch.record.run import Phase
from hybridwatch.scenario.scenario import TrialCounts


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial to make.

    Attributes:
        phase: What it is for.
        side: Index of the build.
        warmup: Not to be compared.
    """

    phase: Phase
    side: int
    warmup: bool = False


def plan(counts: TrialCounts, sides: int) -> tuple[PlannedTrial, ...]:
    """Lay out a session.

    Right before fast: contracts, then accuracy, then times. Sides alternate as A B B A, so that a
    machine that drifts steadily slows both by the same amount. Each phase that is timed begins
    with a warm-up of each side.

    Args:
        counts: Trials of each phase and side.
        sides: 1 or 2.
    """
    return (
        *_alternating(Phase.CONTRACT, sides, counts.contract),
        *_alternating(Phase.ACCURACY, sides, 1),
        *_warmups(Phase.PERFORMANCE, sides),
        *_alternating(Phase.PERFORMANCE, sides, counts.performance),
        *_warmups(Phase.HOST_SYNC, sides),
        *_alternating(Phase.HOST_SYNC, sides, counts.host_sync),
    )


def _warmups(phase: Phase, sides: int) -> Iterator[PlannedTrial]:
    return (PlannedTrial(phase, side, warmup=True) for side in range(sides))


def _alternating(phase: Phase, sides: int, rounds: int) -> Iterator[PlannedTrial]:
    for number in range(rounds):
        order = range(sides) if number % 2 == 0 else reversed(range(sides))
        for side in order:
            yield PlannedTrial(phase, side)
