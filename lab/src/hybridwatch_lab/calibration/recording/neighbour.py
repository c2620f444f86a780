"""``python -m hybridwatch_lab.calibration.recording.neighbour -- COMMAND``: noise beside a command.

The neighbour is one process or several that work in bursts and rest between them; lengths of both
are random, from a seed. It is no descendant of the command, so what a session in the command sees
of it is what it would see of a stranger: processor time that others used.

It ends with the command, and with the process that started it, however that one ends: a
burst goes on only while the pipe on its standard input is open.
"""

import argparse
import itertools
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from hybridwatch.system.python_command import python_command

_MEAN_REST_S: Final = 4.0
_MEAN_BURST_S: Final = 3.0
"""A trial of a smoke scenario takes one to three seconds, so a burst covers one, several, or a part
of one."""
_SLICE_S: Final = 0.05
"""Of a burst, between two looks at whether it is still wanted."""
_BYTES: Final = 8 * 1024**2
_NEIGHBOUR: Final = "hybridwatch_lab.calibration.recording.neighbour"
_WORKER: Final = "--worker"


@dataclass(frozen=True, slots=True)
class Habits:
    """How a neighbour behaves.

    Attributes:
        seed: Of its lengths; with it they are the same every time.
        rest_s: Mean length of a rest, in seconds; lengths are exponential.
        burst_s: The same of a burst.
    """

    seed: int
    rest_s: float = _MEAN_REST_S
    burst_s: float = _MEAN_BURST_S

    def lengths(self) -> Iterator[tuple[float, float]]:
        """Give rest and burst in turn, in seconds, for ever."""
        rng = np.random.default_rng(self.seed)
        while True:
            yield float(rng.exponential(self.rest_s)), float(rng.exponential(self.burst_s))


@contextmanager
def neighbours(habits: tuple[Habits, ...]) -> Iterator[tuple[int, ...]]:
    """Noisy neighbours as long as the context lasts, by their process ids."""
    with ExitStack() as ending:
        # Popen closes the pipe when its context ends, then waits for the end of the process.
        started = [ending.enter_context(_started(one)) for one in habits]
        yield tuple(process.pid for process in started)


def _started(habits: Habits) -> "subprocess.Popen[bytes]":
    numbers = map(str, (habits.seed, habits.rest_s, habits.burst_s))
    command = python_command("-m", _NEIGHBOUR, _WORKER, *numbers)
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def disturb(habits: Habits, gone: Callable[[float], bool]) -> None:
    """Rest and work in turn until nobody wants it any more.

    ``gone``: waits for at most so many seconds, and says whether its caller is gone.
    """
    source = np.ones(_BYTES, dtype=np.uint8)
    target = source.copy()
    for rest_s, burst_s in habits.lengths():
        if gone(rest_s):
            return
        end = time.monotonic() + burst_s
        while time.monotonic() < end:
            if gone(0.0):
                return
            _work(min(end, time.monotonic() + _SLICE_S), source, target)


def _work(end: float, source: np.ndarray, target: np.ndarray) -> None:
    """Integers in Python and memory in NumPy, as a test suite or a build next door."""
    state = 1
    while time.monotonic() < end:
        for _ in range(2000):
            state = (state * 1103515245 + 12345) % 2147483648
        np.copyto(target, source)


def _owner_gone(patience_s: float) -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], patience_s)
    # Nothing is ever sent: what can be read is the end of the pipe.
    return bool(readable)


def main() -> int:
    """Run the command beside its neighbours; its exit status, or 2 if the call was wrong."""
    if sys.argv[1:2] == [_WORKER]:
        seed, rest_s, burst_s = sys.argv[2:]
        disturb(Habits(int(seed), float(rest_s), float(burst_s)), _owner_gone)
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m hybridwatch_lab.calibration.recording.neighbour",
        description="Run a command while other processes load the machine in bursts.",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the lengths of bursts and rests")
    parser.add_argument("--processes", type=int, default=2, help="neighbours (default: 2)")
    parser.add_argument("--rest", type=float, default=_MEAN_REST_S, help="mean rest, seconds")
    parser.add_argument("--burst", type=float, default=_MEAN_BURST_S, help="mean burst, seconds")
    parser.add_argument("command", nargs="+", help="after --")
    options = parser.parse_args()
    if min(options.rest, options.burst) <= 0 or options.processes < 1:
        parser.error("--rest and --burst: expected more than 0 seconds; --processes: at least 1")
    seeds = itertools.count(options.seed * options.processes)
    every = tuple(
        Habits(seed, options.rest, options.burst)
        for seed in itertools.islice(seeds, options.processes)
    )
    with neighbours(every):
        return subprocess.run(options.command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
