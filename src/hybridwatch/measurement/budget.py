"""Adding trials until a run is decided or its time is spent.

When to look is fixed before the first trial, and who judges is handed in: measuring knows no
verdicts. A block is one round of every timed phase on every side.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from hybridwatch.records.run import InterimAnalyses, Run, Trial

_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """How far a run has settled what it asks.

    Attributes:
        open: Metrics that more timed trials could still settle.
        of: Metrics that rest on timed trials.
    """

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
    """The clock of a budget: how long a block takes, and whether one more fits in.

    Args:
        seconds: From now on.
    """

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
    tell: Callable[[str], None],
) -> Run:
    """Add blocks of trials to a run, look by look, until nothing is open or no time is left.

    When the time is spent between two looks, a last one is made of what is there.

    ``run`` has what was measured before: contracts, accuracy, warm-ups; the clock was started with
    the session. ``make_block`` is given the block's number from 0 and the block to be reached next;
    ``tell`` gets a line after each look. The run that comes back has the looks that were planned
    and made.
    """
    run = replace(run, looks=InterimAnalyses(budget.looks, ()))
    done = 0
    for number, goal in enumerate(budget.looks, start=1):
        begun = done
        while done < goal and pace.has_room():
            with pace.block():
                run = replace(run, trials=run.trials + make_block(done, goal))
            done += 1
        if done == begun:
            break
        run = _looked(run, done)
        standing = budget.judge(run)
        tell(_progress(budget, number, done, standing, pace))
        if not standing.open or done < goal:
            break
    return run


def _looked(run: Run, blocks: int) -> Run:
    assert run.looks is not None  # noqa: S101 - set before the first block
    return replace(run, looks=replace(run.looks, made=(*run.looks.made, blocks)))


def _progress(budget: Budget, number: int, done: int, standing: BudgetStatus, pace: Pace) -> str:
    """Tell what is open, and what comes next."""
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
