"""Which trials a session makes, and in which order."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from hybridwatch.records.run import Phase
from hybridwatch.scenarios.scenario import Scenario, TrialCounts


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial to make.

    ``number`` counts the trials of its phase and side from 0; a warm-up is not compared.
    """

    phase: Phase
    side: int
    warmup: bool = False
    number: int = 0


USUAL_PHASES: Final = tuple(phase for phase in Phase if phase is not Phase.DUET)
"""What a session measures unless it is asked for something else. A duet takes an engine a side."""
TIMED_PHASES: Final = (Phase.PERFORMANCE, Phase.HOST_SYNC, Phase.DUET)
"""Phases that need the load client, in the order of a block."""


def list_phases(scenario: Scenario, wanted: Collection[Phase] = USUAL_PHASES) -> tuple[Phase, ...]:
    """Which of the wanted phases a scenario has: without tasks there is nothing to be answered."""
    missing = {Phase.ACCURACY} if scenario.accuracy is None else set()
    return tuple(phase for phase in Phase if phase in wanted and phase not in missing)


def plan(
    counts: TrialCounts,
    sides: int,
    phases: Collection[Phase] = USUAL_PHASES,
    warmed: Collection[Phase] = TIMED_PHASES,
) -> tuple[PlannedTrial, ...]:
    """Lay out a session.

    Right before fast: contracts, then accuracy, then times. Sides alternate as A B B A, so that a
    machine that drifts steadily slows both by the same amount. Each phase that is timed begins
    with a warm-up of each side, but for a duet, each trial of which is an engine's first.
    """
    whole = (
        *_untimed(counts, sides),
        *_warmups(Phase.PERFORMANCE, sides),
        *_alternating(Phase.PERFORMANCE, sides, counts.performance),
        *_warmups(Phase.HOST_SYNC, sides),
        *_alternating(Phase.HOST_SYNC, sides, counts.host_sync),
        *_alternating(Phase.DUET, sides, counts.performance),
    )
    return tuple(
        trial
        for trial in whole
        if trial.phase in phases and (trial.phase in warmed or not trial.warmup)
    )


def plan_start(
    counts: TrialCounts, sides: int, phases: Collection[Phase] = USUAL_PHASES
) -> tuple[PlannedTrial, ...]:
    """Lay out what comes before the first block of a session that goes on until it is decided.

    Contracts and accuracy as in ``plan``, then the warm-ups of all timed phases. The counts of
    timed phases do not matter.
    """
    whole = (
        *_untimed(counts, sides),
        *_warmups(Phase.PERFORMANCE, sides),
        *_warmups(Phase.HOST_SYNC, sides),
    )
    return tuple(trial for trial in whole if trial.phase in phases)


def plan_block(
    number: int, sides: int, phases: Collection[Phase] = USUAL_PHASES
) -> tuple[PlannedTrial, ...]:
    """Lay out one block: a round of every timed phase; each phase alternates as in ``plan``."""
    return tuple(
        trial for phase in TIMED_PHASES if phase in phases for trial in _round(phase, sides, number)
    )


def plan_more(phase: Phase, sides: int, done: int, rounds: int) -> tuple[PlannedTrial, ...]:
    """Lay out further rounds of a phase that has so many; they alternate on as in ``plan``."""
    numbers = range(done, done + rounds)
    return tuple(trial for number in numbers for trial in _round(phase, sides, number))


def made_at_once(planned: Sequence[PlannedTrial]) -> Iterator[tuple[PlannedTrial, ...]]:
    """Give the trials that are made at the same time, in their order: those of a duet, else one."""
    for (phase, *_), found in groupby(planned, lambda one: (one.phase, one.warmup, one.number)):
        group = tuple(found)
        yield from [group] if phase is Phase.DUET else ((one,) for one in group)


def _untimed(counts: TrialCounts, sides: int) -> Iterator[PlannedTrial]:
    yield from _alternating(Phase.CONTRACT, sides, counts.contract)
    yield from _alternating(Phase.ACCURACY, sides, 1)


def _warmups(phase: Phase, sides: int) -> Iterator[PlannedTrial]:
    return (PlannedTrial(phase, side, warmup=True) for side in range(sides))


def _alternating(phase: Phase, sides: int, rounds: int) -> Iterator[PlannedTrial]:
    return (trial for number in range(rounds) for trial in _round(phase, sides, number))


def _round(phase: Phase, sides: int, number: int) -> Iterator[PlannedTrial]:
    order = range(sides) if number % 2 == 0 else reversed(range(sides))
    return (PlannedTrial(phase, side, number=number) for side in order)
