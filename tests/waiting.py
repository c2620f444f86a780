"""Waiting until something has come true, never for a time; ports; deaths at a step.

A limit only ends what hangs. It must be so long that no machine, however busy, reaches it.

A port that the system calls free may be another's a moment later: it gives the same range to
all who ask, and to each connection. These lie below that range, and are claimed by a file.

A process kills itself at a step that a test names: the same place on every machine. A kill after
some milliseconds hits another place on another machine, and often none at all.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Any, Final, TypeVar

import psutil

LIMIT_S: Final = 300.0
"""Below the limit of a whole test, so that what fails is a sentence and not a stack of threads."""
_LOOK_S: Final = 0.01

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None], what: str | Callable[[], str], *, limit_s: float = LIMIT_S
) -> T:
    """Ask again and again, and give the first answer that is true."""
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


_RANGE: Final = range(20_000, 32_000)
_claims: list[int] = []
"""Open files: the kernel ends a claim when its process ends, and not before."""


def own_port() -> int:
    """Give a port of loopback that stays with this process to its end."""
    folder = Path(tempfile.gettempdir()) / f"hybridwatch-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    # Processes look from different places on, so that they seldom meet.
    first = os.getpid() * 31 % len(_RANGE)
    for port in chain(_RANGE[first:], _RANGE[:first]):
        claim = os.open(folder / str(port), os.O_RDWR | os.O_CREAT, 0o600)
        if _is_ours(claim) and _is_free(port):
            _claims.append(claim)
            return port
        os.close(claim)
    raise AssertionError(f"no free port in {_RANGE}")


def _is_ours(claim: int) -> bool:
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as found:
        try:
            found.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


LAST_STEP: Final = 2**62
_WAITS: Final = subprocess.__file__
"""Asks again and again whether a process has ended: how often depends on the machine."""


def strike_at(step: int) -> Callable[[], int]:
    """SIGKILL this process at the n-th step of this thread from here on.

    A step is the begin or the end of a function, of C functions too: between two of them lies each
    write, each statement and each request.
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
