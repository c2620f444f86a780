"""The machine around a trial: a calibration kernel, what others use of it, its clocks, its GPUs.

A slower engine leaves the kernel alone; a slower machine (clock, heat, neighbours) slows both. A
thread asks the driver of GPUs at a steady pace, by host calls that put nothing on a GPU.
``analysis.machine_state`` judges what was seen.
"""

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median
from typing import Final, Self

import numpy as np
import psutil

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import GpuError
from hybridwatch.records.run import GpuState, MachineState
from hybridwatch.system import nvidia
from hybridwatch.system.guarded import processor_seconds
from hybridwatch.system.nvidia import Device, Reading

PERIOD_S: Final = 0.5
"""Between two readings: often enough for a trial of seconds to have some, rare against steps of
milliseconds."""

_ENGINE_BYTES: Final = 64 * 1024**2
"""A GPU of whose memory less than this came into use since before the session has no engine of
ours on it: the context that a process needs to compute there takes more."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs for a session's engines, in their order, and readings before the first was started."""

    devices: tuple[Device, ...] = ()
    before: tuple[Reading, ...] = ()

    @classmethod
    def of(cls, sides: Iterable[BuildRequest]) -> Self:
        """Find them; to be called while no engine of the session is there."""
        asking = [side.label for side in sides if side.spec.accelerator == "cuda"]
        if not asking:
            return cls()
        devices = nvidia.devices()
        if not devices:
            raise GpuError(
                f"{asking[0]} computes on a GPU: CUDA_VISIBLE_DEVICES leaves none to see"
            )
        with nvidia.gauge(devices) as read:
            return cls(devices, read())


class GpuWatch:
    """Reads GPUs in a thread of its own: made before a trial, started with it, stopped after it."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._readings: list[tuple[Reading, ...]] = []
        self._ready = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if gpus.devices:
            self._thread = threading.Thread(target=self._read, name="gpu watch", daemon=True)
            self._thread.start()
            # To reach the driver takes a while, which must not lie in the trial.
            self._ready.wait()

    def start(self) -> None:
        """Forget what was seen until now."""
        self._readings.clear()

    def stop(self) -> tuple[GpuState, ...]:
        """End the readings and give what was seen; may be called again."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        ours = _our_processes() if self._readings else frozenset()
        readings_by_gpu = zip(self._gpus.before, zip(*self._readings, strict=True), strict=False)
        found = (
            _summary(at, before, seen, ours) for at, (before, seen) in enumerate(readings_by_gpu)
        )
        return tuple(one for one in found if one is not None)

    def _read(self) -> None:
        try:
            # A driver that goes away takes the engine with it, as the trial then reports.
            with suppress(GpuError), nvidia.gauge(self._gpus.devices) as read:
                self._ready.set()
                while not self._over.wait(PERIOD_S):
                    self._readings.append(read())
        finally:
            self._ready.set()


def _our_processes() -> frozenset[int]:
    me = psutil.Process()
    return frozenset({me.pid, *(child.pid for child in me.children(recursive=True))})


def _summary(
    index: int, before: Reading, seen: Sequence[Reading], ours: Collection[int]
) -> GpuState | None:
    """What is left of a trial's readings of one GPU; ``None`` if no engine of ours lay on it."""
    if not _is_in_use(before, seen):
        return None
    utilisation = _of(seen, lambda one: one.utilisation)
    temperature = _of(seen, lambda one: one.temperature_c)
    return GpuState(
        index=index,
        readings=len(seen),
        sm_clock_hz=_median(_of(seen, lambda one: one.sm_clock_hz)),
        memory_clock_hz=_median(_of(seen, lambda one: one.memory_clock_hz)),
        power_w=_median(_of(seen, lambda one: one.power_w)),
        temperature_c=max(temperature, default=None),
        utilisation=round(fmean(utilisation), 4) if utilisation else None,
        throttled=_throttled(seen),
        others_bytes=_others(before, seen, ours),
    )


def _is_in_use(before: Reading, seen: Sequence[Reading]) -> bool:
    used = _of(seen, lambda one: one.memory_used_bytes)
    if before.memory_used_bytes is None or not used:
        return True
    return max(used) - before.memory_used_bytes >= _ENGINE_BYTES


def _of(seen: Sequence[Reading], fact: Callable[[Reading], float | None]) -> list[float]:
    values = map(fact, seen)
    return [value for value in values if value is not None]


def _median(values: Sequence[float]) -> float | None:
    return (median(values) or None) if values else None


def _throttled(seen: Sequence[Reading]) -> dict[str, float] | None:
    with_reasons = [one.throttled for one in seen if one.throttled is not None]
    if not with_reasons:
        return None
    counts = Counter(reason for reasons in with_reasons for reason in reasons)
    return {reason: round(count / len(with_reasons), 4) for reason, count in sorted(counts.items())}


def _others(before: Reading, seen: Sequence[Reading], ours: Collection[int]) -> int | None:
    """The most bytes that others held.

    Where the driver does not list our processes, as in most containers: what was held before.
    """
    listed = [one.processes for one in seen if one.processes]
    if any(pid in ours for processes in listed for pid in processes):
        sizes = [_held_by_others(processes, ours) for processes in listed]
        known = [size for size in sizes if size is not None]
        return max(known, default=None)
    return before.memory_used_bytes


def _held_by_others(processes: Mapping[int, int | None], ours: Collection[int]) -> int | None:
    sizes = [size for pid, size in processes.items() if pid not in ours]
    return None if None in sizes else sum(size for size in sizes if size is not None)


REPETITIONS: Final = 5
"""The median of five is not moved by one or two interruptions."""

_INTEGERS: Final = 50_000
_FLOATS: Final = 200_000
_BYTES: Final = 16 * 1024**2
"""More than the caches nearest to a processor hold, so that memory takes part."""
_MEGA: Final = 1e6
_NO_GPUS: Final = Gpus()


def kernel() -> float:
    """Do the same integers, floats and memory once: ten milliseconds, one result everywhere."""
    state = 1
    for _ in range(_INTEGERS):
        state = (state * 1103515245 + 12345) % 2147483648
    floats, source, target = _material()
    np.copyto(target, source)
    # No matrix product: it would start threads, and those would measure the scheduler.
    return state + float(np.sin(floats).sum()) + float(target[-1])


def kernel_seconds() -> tuple[float, ...]:
    """Time every repetition of the kernel."""
    found = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        kernel()
        found.append(round(time.perf_counter() - begin, 9))
    return tuple(found)


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
    """Processor seconds of the machine, idle and waiting ones, and of us with our descendants."""

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


@lru_cache(maxsize=1)
def _material() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays made once, so that no page is fetched while the clock runs."""
    source = np.ones(_BYTES, dtype=np.uint8)
    return np.linspace(0.0, 100.0, _FLOATS), source, source.copy()


def _clock_hz() -> float | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    clocks = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", text, re.MULTILINE)]
    used = [clocks[core] for core in sorted(os.sched_getaffinity(0)) if core < len(clocks)]
    return float(round(fmean(used) * _MEGA)) if used and min(used) > 0 else None
