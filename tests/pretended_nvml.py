"""NVML as a machine without a GPU can have it: the functions of ``pynvml`` that we call.

Answers and refusals are those that NVML documents. ``tests/unit/system/test_nvidia.py`` holds
every function and constant here to the real module's names, values and arguments.
"""

import types
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pynvml
import pytest

Answer = TypeVar("Answer")
GIB = 1024**3
CONSTANTS = (
    "NVML_CLOCK_SM",
    "NVML_CLOCK_MEM",
    "NVML_TEMPERATURE_GPU",
    "nvmlMemory_v2",
    "nvmlClocksEventReasonSwPowerCap",
    "nvmlClocksEventReasonHwSlowdown",
    "nvmlClocksEventReasonSwThermalSlowdown",
    "nvmlClocksEventReasonHwThermalSlowdown",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown",
)
ERRORS = (
    "NVMLError",
    "NVMLError_LibraryNotFound",
    "NVMLError_DriverNotLoaded",
    "NVMLError_NotSupported",
    "NVMLError_NoPermission",
    "NVMLError_FunctionNotFound",
    "NVMLError_NotFound",
    "NVMLError_InvalidArgument",
    "NVMLLibraryMismatchError",
)


@dataclass
class Card:
    """A GPU; what it refuses to tell is named by the function that asks."""

    uuid: str = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
    name: str = "NVIDIA H200"
    memory: int = 141 * GIB
    used: int = 0
    sm_mhz: int = 1980
    memory_mhz: int = 3201
    milliwatts: int = 300_000
    limit_milliwatts: int = 700_000
    celsius: int = 55
    millijoules: int = 0
    busy_percent: int = 90
    reasons: int = 0
    processes: dict[int, int | None] = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()


class PretendedNvml:
    """Stands for the module ``pynvml``; handles are the cards themselves."""

    def __init__(self, *cards: Card, broken: int | None = None) -> None:
        self.cards = list(cards)
        self.broken = broken
        """Error code with which ``nvmlInit`` fails."""
        self.open = 0
        for name in (*CONSTANTS, *ERRORS):
            setattr(self, name, getattr(pynvml, name))

    def nvmlInit(self) -> None:
        if self.broken is not None:
            raise pynvml.NVMLError(self.broken)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return self._answer("570.133.20")

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return self._answer(12080)

    def nvmlDeviceGetCount(self) -> int:
        return self._answer(len(self.cards))

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self._answer(self.cards[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:
        for card in self.cards:
            if card.uuid == uuid:
                return self._answer(card)
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetIndex(self, handle: Card) -> int:
        return self._answer(self.cards.index(handle))

    def nvmlDeviceGetUUID(self, handle: Card) -> str:
        return self._answer(handle.uuid)

    def nvmlDeviceGetName(self, handle: Card) -> str:
        return self._answer(handle.name)

    def nvmlDeviceGetMemoryInfo(self, handle: Card, version: int | None = None) -> Any:
        self._refuse(handle, "nvmlDeviceGetMemoryInfo_v2" if version else "nvmlDeviceGetMemoryInfo")
        kept = 0 if version else GIB // 2
        return self._answer(types.SimpleNamespace(total=handle.memory, used=handle.used + kept))

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Card) -> int:
        self._refuse(handle, "nvmlDeviceGetEnforcedPowerLimit")
        return self._answer(handle.limit_milliwatts)

    def nvmlDeviceGetClockInfo(self, handle: Card, type: int) -> int:  # noqa: A002
        self._refuse(handle, "nvmlDeviceGetClockInfo")
        clocks = {pynvml.NVML_CLOCK_SM: handle.sm_mhz, pynvml.NVML_CLOCK_MEM: handle.memory_mhz}
        return self._answer(clocks[type])

    def nvmlDeviceGetPowerUsage(self, handle: Card) -> int:
        self._refuse(handle, "nvmlDeviceGetPowerUsage")
        return self._answer(handle.milliwatts)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Card) -> int:
        self._refuse(handle, "nvmlDeviceGetTotalEnergyConsumption")
        return self._answer(handle.millijoules)

    def nvmlDeviceGetTemperature(self, handle: Card, sensor: int) -> int:
        self._refuse(handle, "nvmlDeviceGetTemperature")
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return self._answer(handle.celsius)

    def nvmlDeviceGetUtilizationRates(self, handle: Card) -> Any:
        self._refuse(handle, "nvmlDeviceGetUtilizationRates")
        return self._answer(types.SimpleNamespace(gpu=handle.busy_percent, memory=0))

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Card) -> int:
        self._refuse(handle, "nvmlDeviceGetCurrentClocksEventReasons")
        return self._answer(handle.reasons)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Card) -> list[Any]:
        self._refuse(handle, "nvmlDeviceGetComputeRunningProcesses")
        return self._answer(
            [
                types.SimpleNamespace(pid=pid, usedGpuMemory=size)
                for pid, size in handle.processes.items()
            ]
        )

    def _answer(self, answer: Answer) -> Answer:
        if not self.open:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        return answer

    @staticmethod
    def _refuse(handle: Card, function: str) -> None:
        if function in handle.refuses:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def pretend(monkeypatch: pytest.MonkeyPatch, *cards: Card, broken: int | None = None) -> Any:
    """Let a test have these GPUs, or a driver that fails with a code; gives the library."""
    library = PretendedNvml(*cards, broken=broken)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", library)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library
