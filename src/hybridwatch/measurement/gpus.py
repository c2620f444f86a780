"""The GPUs of a session: which they are, and how each fares while a trial runs.

A thread asks the driver at a steady pace. The calls are host calls that leave the interpreter free;
nothing is put on a GPU. ``analysis.machine_state`` judges what was seen.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, Self

import psutil

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.errors import GpuError
from hybridwatch.records.run import GpuSurroundings
from hybridwatch.system import nvidia
from hybridwatch.system.nvidia import Device, Reading

PERIOD_S: Final = 0.5
"""Between two readings: often enough for a trial of seconds to have some, rare against steps of
milliseconds."""

_ENGINE_BYTES: Final = 64 * 1024**2
"""A GPU of whose memory less than this came into use since before the session has no engine of
ours on it: the context that a process needs to compute there takes more."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that the engines of a session may use.

    Attributes:
        devices: In the engines' order; none where every build computes on the processor.
        before: A reading of each from before the first engine was started.
    """

    devices: tuple[Device, ...] = ()
    before: tuple[Reading, ...] = ()

    @classmethod
    def of(cls, sides: Iterable[BuildRequest]) -> Self:
        """Find them; to be called while no engine of the session is there.

        Raises:
            GpuError: A build computes on a GPU, and there is no driver, or no GPU to be seen.
        """
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

    def stop(self) -> tuple[GpuSurroundings, ...]:
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
) -> GpuSurroundings | None:
    """What is left of a trial's readings of one GPU; ``None`` if no engine of ours lay on it."""
    if not _is_in_use(before, seen):
        return None
    utilisation = _of(seen, lambda one: one.utilisation)
    temperature = _of(seen, lambda one: one.temperature_c)
    return GpuSurroundings(
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

    Where the driver lists processes by the numbers we know them by, it says so itself. Where it
    does not, as in most containers, what was held before our first engine was started is left.
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
