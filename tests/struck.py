"""A process that kills itself at a step that a test names: the same place on every machine.

A kill after some milliseconds hits another place on another machine, and often none at all.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

LAST_STEP: Final = 2**62
_WAITS: Final = subprocess.__file__
"""Asks again and again whether a process has ended: how often depends on the machine."""


def strike_at(step: int) -> Callable[[], int]:
    """SIGKILL this process at the n-th step of this thread from here on.

    A step is the begin or the end of a function, of C functions too: between two of them lies each
    write, each statement and each request.

    Returns:
        Ends the count and gives the steps made.
    """
    made = 0

    def count(frame: FrameType, _event: str, _argument: Any) -> None:
        nonlocal made
        made += frame.f_code.co_filename != _WAITS
        if made == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def end() -> int:
        sys.setprofile(None)
        return made

    sys.setprofile(count)
    return end


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the steps of a block; the list gets their number at its end."""
    steps: list[int] = []
    end = strike_at(LAST_STEP)
    try:
        yield steps
    finally:
        steps.append(end())
