"""Planted faults: whatever the model runner does for a step lasts longer, by a share of its time.

With a quarter more, tokens per second fall by a fifth, but for what a step costs outside the model
runner.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from hybridwatch_engine.model_runner import work_of_steps
from hybridwatch_engine.patch import Patch, PatchSet

EXTRA: Final = 0.25
"""Share of its own time that a step lasts longer: 1 / 1.25 is 20 % less throughput."""

SMALL_PERCENTS: Final = (2, 5, 10)
"""Shares of the smaller faults (``slow-step-2`` ...), in percent: how small a change is seen?"""

BUSY_PERCENTS: Final = (5, 10)
"""Shares of the faults that work and do not sleep (``busy-step-5`` ...), in percent."""


class Drag:
    """Sleeps after every call that it wraps, a share of what the call took.

    It sleeps and does not spin, so that neighbours on the machine lose nothing. A sleep lasts
    longer than asked for, on a busy machine much longer beside a step of milliseconds; the next
    ones are shorter by that.

    Args:
        settle: Waits until the device has done what the call has asked of it; without that a call
            on a GPU is over before its work is, and a sleep would pass beside it.
        extra: Share of its own time that a call lasts longer.
        clock: Tells the time, in seconds.
        sleep: Sleeps this many seconds.
    """

    def __init__(
        self,
        settle: Callable[[], None],
        extra: float = EXTRA,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settle, self._clock, self._sleep = settle, clock, sleep
        self._extra = extra
        self._inside = False
        self._owed = 0.0

    def slowed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function of the model runner."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:  # a dummy run makes steps, a step dummy runs: slowed as a whole
                return original(*args, **kwargs)
            self._inside, begin = True, self._clock()
            try:
                answer = original(*args, **kwargs)
                self._settle()
            finally:
                self._inside = False
            self._rest(self._extra * (self._clock() - begin))
            return answer

        return call

    def _rest(self, seconds: float) -> None:
        self._owed += seconds
        if self._owed > 0:
            begin = self._clock()
            self._sleep(self._owed)
            self._owed -= self._clock() - begin


def slow_step(extra: float = EXTRA) -> PatchSet:
    """Patches that make steps slow, in either model runner.

    Args:
        extra: Share of its own time that a step lasts longer.
    """
    import torch

    def settle() -> None:
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

    drag = Drag(settle, extra)
    return PatchSet(*(Patch(*function, drag.slowed) for function in work_of_steps()))


def busy_step(extra: float) -> PatchSet:
    """Patches that make steps more work, in either model runner.

    Time is the processor time of the thread that makes the steps, so that work which waits for a
    processor is not made longer by its waiting, and as much is added on a busy machine as on a
    quiet one.

    Args:
        extra: Share of its own processor time that a step works longer.
    """
    drag = Drag(lambda: None, extra, time.thread_time, _work)
    return PatchSet(*(Patch(*function, drag.slowed) for function in work_of_steps()))


def _work(seconds: float) -> None:
    """Keep this thread's processor busy for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
