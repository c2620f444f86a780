"""Reads facts on this machine's NVIDIA GPUs from their driver (NVML).

A typed boundary around NVIDIA's own library (the module ``pynvml``), which queries the driver from
the host: nothing here starts a CUDA context. What a GPU, its driver or a container does not report
is ``None``.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from hybridwatch.errors import GpuError

_Value = TypeVar("_Value")

_MEGA: Final = 1e6
_MILLI: Final = 1e-3

_REASONS: Final = {
    "power-cap": "nvmlClocksEventReasonSwPowerCap",
    "hardware-slowdown": "nvmlClocksEventReasonHwSlowdown",
    "software-thermal": "nvmlClocksEventReasonSwThermalSlowdown",
    "hardware-thermal": "nvmlClocksEventReasonHwThermalSlowdown",
    "power-brake": "nvmlClocksEventReasonHwPowerBrakeSlowdown",
}
"""Our names of the reasons for which a driver lowers the clock of a GPU that has work. Idle clocks
and clocks that were set by hand are no throttling."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver of this machine, such as ``570.133.20``, and the highest CUDA: ``12.8``."""

    version: str
    cuda: str


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that an engine started from here may use.

    Attributes:
        index: NVML's number of it, in the order of the PCI bus; of a MIG slice, within its GPU.
        uuid: Globally unique, as ``CUDA_VISIBLE_DEVICES`` takes it.
        memory_bytes: All of it, what the driver keeps for itself included.
        power_limit_w: The limit in force; ``None`` where the driver does not say.
    """

    index: int
    uuid: str
    name: str
    memory_bytes: int
    power_limit_w: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A GPU at one moment; every value is ``None`` where the driver does not say.

    Attributes:
        temperature_c: Of the chip, degrees Celsius.
        utilisation: Share of the driver's last sample period in which a kernel ran, 0 to 1.
        memory_used_bytes: By all processes; what the driver keeps for itself left out.
        throttled: Why the clock is held down, in our words; empty when it is not.
        processes: Bytes of each process that computes there, ``None`` for unknown. A container
            usually sees none, not even its own.
    """

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    utilisation: float | None = None
    memory_used_bytes: int | None = None
    throttled: frozenset[str] | None = None
    processes: Mapping[int, int | None] | None = None


def driver() -> Driver:
    """Read the driver's own version."""
    with _opened() as nvml:
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        return Driver(nvml.nvmlSystemGetDriverVersion(), f"{cuda // 1000}.{cuda % 1000 // 10}")


def devices() -> tuple[Device, ...]:
    """List the GPUs that an engine may use, in its order.

    ``CUDA_VISIBLE_DEVICES`` is read as CUDA reads it: numbers or (beginnings of) UUIDs, and nothing
    from the first entry on that names no GPU. Numbers count along the PCI bus, which is CUDA's own
    order wherever the GPUs are alike.
    """
    with _opened() as nvml:
        return tuple(_device(nvml, handle) for handle in _visible(nvml))


@contextmanager
def gauge(devices: Sequence[Device]) -> Iterator[Callable[[], tuple[Reading, ...]]]:
    """Give a function that reads the GPUs at that moment, in the order of ``devices``.

    It makes host calls only, and may be called from one thread at a time. From any call on, a
    ``GpuError`` says that there is no driver, it does not answer, or a GPU is gone.
    """
    with _opened() as nvml:
        handles = [nvml.nvmlDeviceGetHandleByUUID(one.uuid) for one in devices]
        yield lambda: tuple(_reading(nvml, handle) for handle in handles)


@contextmanager
def energy_counter(devices: Sequence[Device]) -> Iterator[Callable[[], float | None]]:
    """Give a function that reads what GPUs have taken since their driver came up, joules in all.

    The driver counts the energy of the whole board, from Volta on, and nothing of a slice: then
    ``None``. Errors are as for ``gauge``.
    """
    with _opened() as nvml:
        handles = [nvml.nvmlDeviceGetHandleByUUID(one.uuid) for one in devices]

        def read() -> float | None:
            counted = [
                _answer(nvml, partial(nvml.nvmlDeviceGetTotalEnergyConsumption, handle))
                for handle in handles
            ]
            known = [energy for energy in counted if energy is not None]
            return sum(known) * _MILLI if handles and len(known) == len(counted) else None

        yield read


@contextmanager
def _opened() -> Iterator[Any]:
    """Give the library with a connection to the driver; NVML's errors come out as ours."""
    nvml = _library()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        missing = (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded)
        why = "the NVIDIA driver does not answer:"
        if isinstance(error, missing):
            why = "no NVIDIA driver on this machine: NVML says"
        raise GpuError(f"{why} {_quoted(error)}") from None
    try:
        yield nvml
    except nvml.NVMLError as error:
        raise GpuError(f"the NVIDIA driver does not answer: {_quoted(error)}") from error
    finally:
        nvml.nvmlShutdown()


def _library() -> Any:
    # Late: most of what needs this module's types never needs a driver.
    try:
        import pynvml
    except ImportError:
        raise GpuError(
            "GPU facts come from nvidia-ml-py, which is not installed: "
            "pip install 'hybridwatch[measure]'"
        ) from None
    return pynvml


def _quoted(error: Exception) -> str:
    return f'"{str(error).rstrip(".")}"'


def _visible(nvml: Any) -> list[Any]:
    everything = [
        nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())
    ]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return everything
    by_uuid = {nvml.nvmlDeviceGetUUID(handle): handle for handle in everything}
    found: list[Any] = []
    for entry in (part.strip() for part in visible.split(",")):
        handle = _named(nvml, entry, everything, by_uuid)
        if handle is None:
            break
        found.append(handle)
    return found


def _named(nvml: Any, entry: str, everything: list[Any], by_uuid: Mapping[str, Any]) -> Any | None:
    if entry.isdecimal():
        return everything[int(entry)] if int(entry) < len(everything) else None
    if entry.startswith("MIG-"):
        return _answer(nvml, lambda: nvml.nvmlDeviceGetHandleByUUID(entry))
    fitting = [uuid for uuid in by_uuid if entry.startswith("GPU-") and uuid.startswith(entry)]
    return by_uuid[fitting[0]] if len(fitting) == 1 else None


def _device(nvml: Any, handle: Any) -> Device:
    limit = _answer(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    return Device(
        index=nvml.nvmlDeviceGetIndex(handle),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        memory_bytes=nvml.nvmlDeviceGetMemoryInfo(handle).total,
        power_limit_w=None if limit is None else limit * _MILLI,
    )


def _reading(nvml: Any, handle: Any) -> Reading:
    def ask(function: Callable[..., _Value], *rest: object) -> _Value | None:
        return _answer(nvml, lambda: function(handle, *rest))

    sm_clock = ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)
    memory_clock = ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM)
    power = ask(nvml.nvmlDeviceGetPowerUsage)
    temperature = ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
    rates = ask(nvml.nvmlDeviceGetUtilizationRates)
    reasons = ask(nvml.nvmlDeviceGetCurrentClocksEventReasons)
    running = ask(nvml.nvmlDeviceGetComputeRunningProcesses)
    # Only the second form of the question leaves the driver's own reserve out.
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2)
    bits = ((name, getattr(nvml, bit)) for name, bit in _REASONS.items())
    names = frozenset(name for name, bit in bits if (reasons or 0) & bit)
    return Reading(
        sm_clock_hz=None if sm_clock is None else sm_clock * _MEGA,
        memory_clock_hz=None if memory_clock is None else memory_clock * _MEGA,
        power_w=None if power is None else power * _MILLI,
        temperature_c=None if temperature is None else float(temperature),
        utilisation=None if rates is None else rates.gpu / 100,
        memory_used_bytes=None if memory is None else int(memory.used),
        throttled=None if reasons is None else names,
        processes=None if running is None else {one.pid: one.usedGpuMemory for one in running},
    )


def _answer(nvml: Any, question: Callable[[], _Value]) -> _Value | None:
    """The answer; ``None`` where it is refused, and an error where GPU or driver are gone."""
    refused = (
        nvml.NVMLError_NotSupported,
        nvml.NVMLError_NoPermission,
        nvml.NVMLError_FunctionNotFound,
        nvml.NVMLError_NotFound,
        nvml.NVMLError_InvalidArgument,
        nvml.NVMLLibraryMismatchError,
    )
    try:
        return question()
    except refused:
        return None
