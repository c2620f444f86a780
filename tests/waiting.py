"""Waiting in tests: until something has come true, never for a time.

A limit only ends what hangs. It must be so long that no machine, however busy, reaches it.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final, TypeVar

import psutil

LIMIT_S: Final = 300.0
"""Below the limit of a whole test, so that what fails is a sentence and not a stack of threads."""
_LOOK_S: Final = 0.01

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None], what: str | Callable[[], str], *, limit_s: float = LIMIT_S
) -> T:
    """Ask again and again, and give the first answer that is true.

    Args:
        condition: What is to come true.
        what: What that means; a function where the text takes work, such as the end of a log.
        limit_s: Ends what hangs.

    Raises:
        AssertionError: It did not come true.
    """
    deadline = monotonic() + limit_s
    while not (found := condition()):
        if monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {limit_s:g} s: {said}")
        sleep(_LOOK_S)  # by this name: tests that replace `time.sleep` do not reach it
    return found


def has_ended(process: psutil.Process | int) -> bool:
    """Whether a process is over; one that waits for its parent to ask after it is, too."""
    with suppress(psutil.NoSuchProcess):
        known = psutil.Process(process) if isinstance(process, int) else process
        return not known.is_running() or known.status() == psutil.STATUS_ZOMBIE
    return True


def main_thread_rests(pid: int) -> bool:
    """Whether the main thread of a process waits for something."""
    stat = Path(f"/proc/{pid}/task/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"
