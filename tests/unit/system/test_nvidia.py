"""What we ask of a GPU's driver, and what becomes of its refusals; no GPU is needed."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest

from hybridwatch.errors import GpuError
from hybridwatch.system import nvidia
from hybridwatch.system.nvidia import Device, Driver, Reading
from tests.pretended_nvml import CONSTANTS, ERRORS, GIB, Card, PretendedNvml, pretend

ASKED = frozenset(re.findall(r"nvml\.(\w+)", Path(nvidia.__file__).read_text())) | frozenset(
    nvidia._REASONS.values()
)
"""Every name of NVML's in our source."""


def arguments(function: object) -> list[tuple[str, object]]:
    # NVIDIA's wrappers keep the wrapped function's signature, which is what callers see.
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [(one.name, one.default) for one in found]


def test_every_name_that_we_use_is_in_the_real_library() -> None:
    assert len(ASKED) > 20
    assert [name for name in sorted(ASKED) if not hasattr(pynvml, name)] == []
    assert not hasattr(pynvml, "nvmlDeviceGetGossip")


def test_the_pretended_library_is_the_real_one_in_names_values_and_arguments() -> None:
    pretended = PretendedNvml()
    functions = {name for name in vars(PretendedNvml) if name.startswith("nvml")}
    assert functions | {*CONSTANTS, *ERRORS} >= ASKED
    for name in functions:
        assert arguments(getattr(pretended, name)) == arguments(getattr(pynvml, name)), name
    assert all(getattr(pretended, name) is getattr(pynvml, name) for name in CONSTANTS + ERRORS)


@pytest.mark.parametrize(
    ("struct", "fields"),
    [
        (pynvml.c_nvmlMemory_t, {"total"}),
        (pynvml.c_nvmlMemory_v2_t, {"used", "reserved"}),
        (pynvml.c_nvmlUtilization_t, {"gpu"}),
        (pynvml.c_nvmlProcessInfo_v3_t, {"pid", "usedGpuMemory"}),
    ],
)
def test_the_fields_that_we_read_are_in_the_real_structures(struct: Any, fields: set[str]) -> None:
    assert fields <= {name for name, _ in struct._fields_}


def test_a_machine_without_a_driver_is_reported_in_one_line(monkeypatch) -> None:
    for code in (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED):
        pretend(monkeypatch, broken=code)
        for ask in (nvidia.driver, nvidia.devices):
            with pytest.raises(GpuError) as caught:
                ask()
            told = str(caught.value)
            assert re.fullmatch(r'no NVIDIA driver on this machine: NVML says "[^"\n]+"', told)


def test_a_driver_that_does_not_fit_its_library_is_reported(monkeypatch) -> None:
    pretend(monkeypatch, broken=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    with pytest.raises(GpuError, match=r"^the NVIDIA driver does not answer: .*version mismatch"):
        nvidia.driver()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(GpuError, match=r"pip install 'hybridwatch\[measure\]'"):
        nvidia.devices()


def test_driver_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pretend(
        monkeypatch,
        Card(),
        Card(
            uuid="GPU-2", name="NVIDIA L4", refuses=frozenset({"nvmlDeviceGetEnforcedPowerLimit"})
        ),
    )
    assert nvidia.driver() == Driver("570.133.20", "12.8")
    assert nvidia.devices() == (
        Device(0, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "NVIDIA H200", 141 * GIB, 700.0),
        Device(1, "GPU-2", "NVIDIA L4", 141 * GIB, None),
    )
    assert library.open == 0


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [0, 1, 2]),
        ("1", [1]),
        ("2, 0", [2, 0]),
        ("", []),
        ("-1", []),
        ("0,7,1", [0]),
        ("GPU-b", [1]),
        ("GPU-c1,GPU-a", [2, 0]),
        ("GPU-", []),
        ("NVIDIA H200", []),
        ("MIG-7,0", [3, 0]),
        ("MIG-8,0", []),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(visible, expected, monkeypatch) -> None:
    cards = [Card(uuid=f"GPU-{name}1") for name in "abc"]
    slice_of_one = Card(uuid="MIG-7")
    library = pretend(monkeypatch, *cards, slice_of_one)
    monkeypatch.setattr(library, "nvmlDeviceGetCount", lambda: 3)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [one.index for one in nvidia.devices()] == expected


def test_a_reading_has_base_units_and_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card(
        used=3 * GIB,
        reasons=pynvml.nvmlClocksEventReasonSwPowerCap
        | pynvml.nvmlClocksEventReasonHwThermalSlowdown
        | pynvml.nvmlClocksEventReasonApplicationsClocksSetting,
        processes={11: GIB, 12: None},
    )
    library = pretend(monkeypatch, card)
    with nvidia.gauge(nvidia.devices()) as read:
        (reading,) = read()
        assert library.open == 1
    assert library.open == 0
    assert reading == Reading(
        sm_clock_hz=1.98e9,
        memory_clock_hz=3.201e9,
        power_w=300.0,
        temperature_c=55.0,
        utilisation=0.9,
        memory_used_bytes=3 * GIB,
        throttled=frozenset({"power-cap", "hardware-thermal"}),
        processes={11: GIB, 12: None},
    )


def test_what_a_gpu_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {name for name in vars(PretendedNvml) if name.startswith("nvmlDeviceGet")}
    card = Card()
    pretend(monkeypatch, card)
    devices = nvidia.devices()
    card.refuses = frozenset(asked | {"nvmlDeviceGetMemoryInfo_v2"})
    with nvidia.gauge(devices) as read:
        assert read() == (Reading(),)


def test_a_gpu_that_is_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pretend(monkeypatch, Card())

    def lost(handle: Card) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    def read_once() -> None:
        with nvidia.gauge(devices) as read:
            read()

    devices = nvidia.devices()
    read_once()
    monkeypatch.setattr(library, "nvmlDeviceGetPowerUsage", lost)
    with pytest.raises(GpuError, match="GPU is lost"):
        read_once()
    assert library.open == 0
