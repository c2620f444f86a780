"""The machine around a trial: a calibration kernel, what others use of it, its clocks, its GPUs.

The kernel is a fixed piece of work in this process. An engine that became slower leaves it alone;
a machine that became slower (clock, heat, neighbours) slows both.
``analysis.machine_state`` judges.
"""

import os
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median
from typing import Final, Self

import numpy as np
import psutil

from hybridwatch.measurement.gpus import Gpus, GpuWatch
from hybridwatch.records.run import MachineState
from hybridwatch.system.guarded import processor_seconds

REPETITIONS: Final = 5
"""The median of five is not moved by one or two interruptions."""

_INTEGERS: Final = 50_000
_FLOATS: Final = 200_000
_BYTES: Final = 16 * 1024**2
"""More than the caches nearest to a processor hold, so that memory takes part."""
_MEGA: Final = 1e6
_NO_GPUS: Final = Gpus()


def kernel() -> float:
    """Do the work once: integers in Python, floats in NumPy, memory. About ten milliseconds.

    The result is the same every time and everywhere, to the last digits of a sine.
    """
    state = 1
    for _ in range(_INTEGERS):
        state = (state * 1103515245 + 12345) % 2147483648
    floats, source, target = _material()
    np.copyto(target, source)
    # No matrix product: it would start threads, and those would measure the scheduler.
    return state + float(np.sin(floats).sum()) + float(target[-1])


def kernel_seconds() -> tuple[float, ...]:
    """Time every repetition of the kernel."""
    return tuple(_timed() for _ in range(REPETITIONS))


class Watch:
    """Sees the surroundings of one trial: made before it, started with it, closed after it."""

    def __init__(self, gpus: Gpus = _NO_GPUS) -> None:
        self._gpus = GpuWatch(gpus)
        self._kernel = kernel_seconds()
        self._clock_hz = _clock_hz()
        self._before: _ProcessorTime | None = None

    def start(self) -> None:
        """Begin to count what others use of the processors."""
        self._before = _ProcessorTime.now()
        self._gpus.start()

    def close(self) -> MachineState:
        """Give what was seen."""
        before = self._before
        others = None if before is None else _ProcessorTime.now().others_since(before)
        gpus = self._gpus.stop()
        return MachineState(min(self._kernel), median(self._kernel), others, self._clock_hz, gpus)

    def stop(self) -> None:
        """Look no more; nothing happens if it was closed."""
        self._gpus.stop()


@dataclass(frozen=True, slots=True)
class _ProcessorTime:
    """Processor seconds since the machine and we started.

    Attributes:
        total: Of the machine, idle ones included; all processors together.
        idle: Of the machine, waiting included.
        ours: Of this process and all that descend from it: client and engines.
    """

    total: float
    idle: float
    ours: float

    @classmethod
    def now(cls) -> Self:
        spent = psutil.cpu_times()._asdict()
        # Linux counts the time of guests of this machine as user time, too.
        total = sum(spent.values()) - spent.get("guest", 0.0) - spent.get("guest_nice", 0.0)
        return cls(total, spent["idle"] + spent.get("iowait", 0.0), processor_seconds(os.getpid()))

    def others_since(self, before: Self) -> float | None:
        """Share of the machine that was used, and not by us; ``None`` if no time was counted."""
        total = self.total - before.total
        if total <= 0:
            return None
        used = total - (self.idle - before.idle) - (self.ours - before.ours)
        # Clock ticks of ten milliseconds: a small share may come out below nothing.
        return round(min(1.0, max(0.0, used / total)), 4)


def _timed() -> float:
    begin = time.perf_counter()
    kernel()
    return round(time.perf_counter() - begin, 9)


@lru_cache(maxsize=1)
def _material() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays made once, so that no page is fetched while the clock runs."""
    source = np.ones(_BYTES, dtype=np.uint8)
    return np.linspace(0.0, 100.0, _FLOATS), source, source.copy()


def _clock_hz() -> float | None:
    """Mean clock of the processors that we may use."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    clocks = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", text, re.MULTILINE)]
    used = [clocks[core] for core in sorted(os.sched_getaffinity(0)) if core < len(clocks)]
    return float(round(fmean(used) * _MEGA)) if used and min(used) > 0 else None
