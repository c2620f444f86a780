"""Duets: both sides are loaded at the same time, so that what disturbs one disturbs the other.

Trials that follow one another meet other seconds of the machine, and on a busy one these differ by
more than most changes. Two engines that take turns on one processor every few milliseconds meet the
same caches, clocks and neighbours (Bulej et al., "Duet Benchmarking: Improving Measurement Accuracy
in the Cloud", ICPE 2020). Waiting for the processor is no part of what each of them works.

What is left is how each start lays an engine out in memory: with busy neighbours two engines of
one build differ by percents, for as long as they live. So each block has engines of its own, and is
a draw of that as well (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013).
What can be drawn alike for both sides is: within a block their Python has the same seed of hashes,
which decides in which order sets go and how full dictionaries lie.
"""

import math
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import BuildError, MeasurementError
from hybridwatch.records.run import Phase


def is_duet(phases: Collection[Phase]) -> bool:
    """Whether a session is one: it measures nothing else."""
    return set(phases) == {Phase.DUET}


def can_be_duet(sides: Sequence[BuildRequest]) -> bool:
    """Whether these builds can: two that compute on a CPU."""
    return len(sides) == 2 and all(side.spec.accelerator == "cpu" for side in sides)


def require_duet(sides: Sequence[BuildRequest], phases: Collection[Phase]) -> None:
    """Refuse a duet that cannot be one.

    Raises:
        BuildError: There are not two sides, one does not compute on processors, or another phase
            would be measured on engines that share one.
    """
    others = sorted(phase.value for phase in phases if phase is not Phase.DUET)
    if others:
        raise BuildError(
            "phase duet: its engines share one processor, so it is measured alone; found "
            f"{', '.join(others)} beside it"
        )
    if not can_be_duet(sides):
        found = ", ".join(f"{side.label} ({side.spec.accelerator})" for side in sides)
        raise BuildError(f"phase duet: expected two builds that compute on a CPU, found {found}")


@contextmanager
def one_processor() -> Iterator[None]:
    """Hold this thread, and what it starts, on one processor.

    The last one that we may use: devices interrupt the first more often.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class Barrier:
    """Where the sides of a duet wait for each other, each time before they are loaded.

    Not ``threading.Barrier``: breaking it when all have come also wakes with an error those sides
    that have come and have not gone on yet.
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
