"""Which trials a session makes, in which order, and until when.

Looks are fixed before the first trial, and judged elsewhere. A block is one round of every timed
phase on every side.

In a duet both sides are loaded at the same time, so that what disturbs one disturbs the other. On a
busy machine seconds differ by more than most changes. Engines that take turns on one processor
every few milliseconds meet the same caches, clocks and neighbours (Bulej et al., "Duet
Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE 2020); no waiting counts.

How a start lays an engine out in memory makes percents for as long as it lives. So each block
starts its own, as a draw of that as well (Kalibera and Jones, "Rigorous Benchmarking in Reasonable
Time", ISMM 2013), with one seed of hashes, which decides the order of sets, for both sides.
"""

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, groupby
from statistics import fmean
from threading import Condition
from typing import Final

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import BuildError, MeasurementError
from hybridwatch.records.run import InterimAnalyses, Phase, Run, Trial
from hybridwatch.scenarios.scenario import Scenario, TrialCounts


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial; ``number`` counts those of its phase and side from 0, ``start`` shared starts."""

    phase: Phase
    side: int
    warmup: bool = False
    number: int = 0
    start: int | None = None


USUAL_PHASES: Final = tuple(phase for phase in Phase if phase is not Phase.DUET)
"""What a session measures unless something else is requested. A duet takes an engine a side."""
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
    machine that drifts steadily slows both by the same amount. Each timed phase, and each start
    that shares in performance trials, begins with a warm-up of each side, but no duet does.
    """
    whole = (
        *_alternating(Phase.CONTRACT, sides, counts.contract),
        *_alternating(Phase.ACCURACY, sides, 1),
        *_timed(sides, range(counts.performance), number_starts(counts)),
        *_warmups(Phase.HOST_SYNC, range(sides)),
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
    """Lay out contracts, accuracy and warm-ups, before blocks that go on until it is decided."""
    return tuple(
        trial
        for trial in plan(counts, sides, phases)
        if trial.warmup or trial.phase not in TIMED_PHASES
    )


def plan_block(
    number: int, sides: int, phases: Collection[Phase] = USUAL_PHASES
) -> tuple[PlannedTrial, ...]:
    """Lay out one block: a round of every timed phase; each phase alternates as in ``plan``."""
    return tuple(
        trial for phase in TIMED_PHASES if phase in phases for trial in _round(phase, sides, number)
    )


def number_starts(counts: TrialCounts, first: int = 0) -> range:
    """Number the starts that share performance trials, from ``first`` on; empty for one start."""
    return range(first, first + counts.starts) if counts.starts > 1 else range(0)


def plan_more(sides: int, done: int, rounds: int, starts: range) -> tuple[PlannedTrial, ...]:
    """Lay out rounds of performance trials that alternate on, on ``starts`` or old engines."""
    numbers = range(done, done + rounds)
    if starts and rounds:
        return tuple(_timed(sides, numbers, starts))
    return tuple(one for number in numbers for one in _round(Phase.PERFORMANCE, sides, number))


def plan_again(
    made: Mapping[Phase, int],
    sides: int,
    warmed: Collection[Phase] = TIMED_PHASES,
    starts: range = range(0),
) -> tuple[PlannedTrial, ...]:
    """Lay out as many rounds again of each timed phase, after those made, and warmed up again."""
    performance, host_sync, duet = (
        range(made.get(phase, 0), 2 * made.get(phase, 0)) for phase in TIMED_PHASES
    )
    whole = (
        *(_timed(sides, performance, starts) if performance else ()),
        *(_warmups(Phase.HOST_SYNC, range(sides)) if host_sync else ()),
        *(one for number in host_sync for one in _round(Phase.HOST_SYNC, sides, number)),
        *(one for number in duet for one in _round(Phase.DUET, sides, number)),
    )
    return tuple(one for one in whole if one.phase in warmed or not one.warmup)


def made_at_once(planned: Sequence[PlannedTrial]) -> Iterator[tuple[PlannedTrial, ...]]:
    """Give the trials that are made at the same time, in their order: those of a duet, else one."""
    for (phase, *_), found in groupby(planned, lambda one: (one.phase, one.warmup, one.number)):
        group = tuple(found)
        yield from [group] if phase is Phase.DUET else ((one,) for one in group)


def _warmups(phase: Phase, sides: Iterable[int]) -> Iterator[PlannedTrial]:
    return (PlannedTrial(phase, side, warmup=True) for side in sides)


def _timed(sides: int, numbers: range, starts: range) -> Iterator[PlannedTrial]:
    """Lay out rounds of performance trials, in equal parts on each of the starts."""
    shares = starts[: len(numbers)] or (None,)
    for place, start in enumerate(shares):
        first, end = (len(numbers) * at // len(shares) for at in (place, place + 1))
        rounds = (_round(Phase.PERFORMANCE, sides, number) for number in numbers[first:end])
        # Its warm-up starts an engine: each side's comes first on every second start.
        order = range(sides) if place % 2 == 0 else reversed(range(sides))
        for one in chain(_warmups(Phase.PERFORMANCE, order), *rounds):
            yield replace(one, start=start)


def _alternating(phase: Phase, sides: int, rounds: int) -> Iterator[PlannedTrial]:
    return (trial for number in range(rounds) for trial in _round(phase, sides, number))


def _round(phase: Phase, sides: int, number: int) -> Iterator[PlannedTrial]:
    order = range(sides) if number % 2 == 0 else reversed(range(sides))
    return (PlannedTrial(phase, side, number=number) for side in order)


_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """How many of the metrics that rest on timed trials more of them could still settle."""

    open: int
    of: int


@dataclass(frozen=True, slots=True)
class Budget:
    """What a session may spend, in seconds from its start, until it is decided.

    Attributes:
        looks: Blocks after which the run is judged, ascending.
        judge: Says how much of the run so far is settled; ``Run.looks`` says which look this is.
    """

    looks: tuple[int, ...]
    seconds: float
    judge: Callable[[Run], BudgetStatus]


class Pace:
    """The clock of a budget in seconds: how long a block takes, and whether one more fits in."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._taken: list[float] = []

    @property
    def block_seconds(self) -> float:
        """Mean of the blocks so far; 0 before the first."""
        return fmean(self._taken) if self._taken else 0.0

    def has_room(self) -> bool:
        """Whether a block as long as those so far would end in time."""
        left = self._end - self._clock()
        return left > 0 and self.block_seconds <= left

    @contextmanager
    def block(self) -> Iterator[None]:
        """Time one block."""
        begin = self._clock()
        yield
        self._taken.append(self._clock() - begin)


def add_until_decided(
    run: Run,
    budget: Budget,
    pace: Pace,
    make_block: Callable[[int, int], tuple[Trial, ...]],
    report: Callable[[str], None],
) -> Run:
    """Add blocks of trials to a run, look by look, until nothing is open or no time is left.

    When the time is spent between two looks, a last one is made of what is there. ``make_block`` is
    given the block's number from 0 and the block to be reached next; ``report`` gets a line after
    each look.
    """
    made: tuple[int, ...] = ()
    run = replace(run, looks=InterimAnalyses(budget.looks, made))
    done = 0
    for number, goal in enumerate(budget.looks, start=1):
        begun = done
        while done < goal and pace.has_room():
            with pace.block():
                run = replace(run, trials=run.trials + make_block(done, goal))
            done += 1
        if done == begun:
            break
        made = (*made, done)
        run = replace(run, looks=InterimAnalyses(budget.looks, made))
        standing = budget.judge(run)
        report(_progress(budget, number, done, standing, pace))
        if not standing.open or done < goal:
            break
    return run


def _progress(budget: Budget, number: int, done: int, standing: BudgetStatus, pace: Pace) -> str:
    look = f"look {number} of {len(budget.looks)}, {done} trials a side"
    if not standing.open:
        return f"{look}: all {standing.of} timed metrics are decided"
    found = f"{look}: {standing.open} of {standing.of} timed metrics open"
    if done < budget.looks[number - 1] or not pace.has_room():
        return f"{found}; the time is spent"
    if number == len(budget.looks):
        return f"{found}; this was the last look"
    blocks = budget.looks[number] - done
    minutes = math.ceil(blocks * pace.block_seconds / _MINUTE)
    return f"{found}; next look after {blocks} more blocks, about {minutes} min"


def is_duet(phases: Collection[Phase]) -> bool:
    """Whether a session is one: it measures nothing else."""
    return set(phases) == {Phase.DUET}


def can_be_duet(sides: Sequence[BuildRequest]) -> bool:
    """Whether these builds can: two that compute on a CPU."""
    return len(sides) == 2 and all(side.spec.accelerator == "cpu" for side in sides)


def require_duet(sides: Sequence[BuildRequest], phases: Collection[Phase]) -> None:
    """Refuse a duet that cannot be one."""
    others = sorted(phase.value for phase in phases if phase is not Phase.DUET)
    if others:
        raise BuildError(
            "phase duet: its engines share one processor, so it is measured alone; found "
            f"{', '.join(others)} next to it"
        )
    if not can_be_duet(sides):
        found = ", ".join(f"{side.label} ({side.spec.accelerator})" for side in sides)
        raise BuildError(f"phase duet: expected two builds that compute on a CPU, found {found}")


@contextmanager
def one_processor() -> Iterator[None]:
    """Hold this thread, and what it starts, on the last processor: the first has interrupts."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class Barrier:
    """Where the sides of a duet wait for each other, each time before they are loaded.

    Breaking ``threading.Barrier`` when all have come fails sides that have not gone on yet.
    """

    def __init__(self, sides: int) -> None:
        self._sides = sides
        self._came = 0
        self._changed = Condition()
        self._is_off = False

    def wait(self) -> None:
        """Wait until all have come as often as this one; fails when one of them will not come."""
        with self._changed:
            self._came += 1
            # No side comes to the next round before all have come to this one.
            full = math.ceil(self._came / self._sides) * self._sides
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._came >= full or self._is_off)
            if self._came < full:
                raise MeasurementError("the other side of the duet failed")

    def leave(self) -> None:
        """Be gone: who still waits for this side waits in vain."""
        with self._changed:
            self._is_off = True
            self._changed.notify_all()
