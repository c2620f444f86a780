"""The calibration kernel and what is seen of the machine; no assertion depends on its speed."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from pynvml import (
    NVML_ERROR_DRIVER_NOT_LOADED,
    NVML_ERROR_GPU_IS_LOST,
    NVMLError,
    nvmlClocksEventReasonHwThermalSlowdown,
    nvmlClocksEventReasonSwPowerCap,
)

from hybridwatch.errors import GpuError
from hybridwatch.measurement import machine_state
from hybridwatch.measurement.machine_state import (
    REPETITIONS,
    Gpus,
    GpuWatch,
    Watch,
    kernel,
    kernel_seconds,
)
from hybridwatch.measurement.testbed import HOST_VARIABLE, probe_testbed
from hybridwatch.records.run import GpuState
from hybridwatch.system import nvidia
from hybridwatch.system.guarded import processor_seconds
from tests.pretended_nvml import GIB, Card, pretend


def test_kernel_does_the_same_work_every_time() -> None:
    assert kernel() == kernel()


def test_every_repetition_is_timed() -> None:
    seconds = kernel_seconds()
    assert len(seconds) == REPETITIONS
    assert min(seconds) > 0


def test_watch_sees_the_kernel_and_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine_state, "kernel_seconds", lambda: (0.012, 0.011, 0.019, 0.011, 0.013)
    )
    readings = iter(
        [
            machine_state._ProcessorTime(total=100.0, idle=50.0, ours=20.0),
            machine_state._ProcessorTime(total=110.0, idle=54.0, ours=23.5),
        ]
    )
    monkeypatch.setattr(machine_state._ProcessorTime, "now", lambda: next(readings))
    watch = Watch()
    watch.start()
    seen = watch.close()
    assert (seen.kernel_best_s, seen.kernel_median_s) == (0.011, 0.012)
    assert seen.others == 0.25  # 10 s in all, 4 idle, 3.5 ours


def test_shares_stay_between_nothing_and_everything() -> None:
    """Clock ticks are coarse, so that we may seem to have used more than the machine."""
    begin = machine_state._ProcessorTime(total=100.0, idle=50.0, ours=20.0)
    assert machine_state._ProcessorTime(110.0, 58.0, 23.0).others_since(begin) == 0.0
    assert machine_state._ProcessorTime(100.0, 50.0, 20.0).others_since(begin) is None


def test_our_own_processes_are_no_neighbours() -> None:
    """What the tree used is counted, that of a child which has ended too."""
    before = processor_seconds(os.getpid())
    spin = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    with psutil.Popen(["python3", "-c", spin]) as child:
        child.wait()
    assert processor_seconds(os.getpid()) - before >= 0.25


def test_unreadable_clock_is_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert machine_state._clock_hz() is None


def test_clock_is_the_mean_of_the_processors_that_we_may_use(monkeypatch) -> None:
    text = "cpu MHz\t\t: 2000.000\ncpu MHz\t\t: 3000.000\ncpu MHz\t\t: 4000.000\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert machine_state._clock_hz() == 2_500_000_000


ENGINE = 40 * GIB


def side(accelerator: str = "cuda") -> Any:
    return SimpleNamespace(label="cuda-0.23.0", spec=SimpleNamespace(accelerator=accelerator))


class Ticks:
    """The watch's event, which lets it read once for every change of the card, and no more."""

    def __init__(self, *changes: Callable[[], object]) -> None:
        self._changes = list(changes)

    def wait(self, _seconds: float) -> bool:
        if not self._changes:
            return True
        self._changes.pop(0)()
        return False

    def set(self) -> None:
        """Only the end of the changes ends the watch."""


def watched(found: Gpus, *changes: Callable[[], object]) -> tuple[GpuState, ...]:
    """What a trial leaves during which the cards change."""
    watch = GpuWatch(Gpus())
    watch._gpus, watch._over = found, Ticks(*changes)  # type: ignore[assignment]
    watch._read()
    return watch.stop()


def set_to(card: Card, **facts: Any) -> Callable[[], object]:
    return lambda: vars(card).update(facts)


def test_builds_of_the_processor_ask_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, broken=NVML_ERROR_DRIVER_NOT_LOADED)
    assert Gpus.of([side("cpu"), side("cpu")]) == Gpus()
    with pytest.raises(GpuError, match="no NVIDIA driver on this machine"):
        Gpus.of([side("cpu"), side("cuda")])


def test_no_gpu_left_to_see_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, Card())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(GpuError, match=r"^cuda-0.23.0 computes on a GPU: CUDA_VISIBLE_DEVICES"):
        Gpus.of([side()])


def test_a_trial_keeps_what_was_seen_of_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card()
    pretend(monkeypatch, card)
    found = Gpus.of([side()])
    capped = nvmlClocksEventReasonSwPowerCap
    (seen,) = watched(
        found,
        set_to(card, used=ENGINE, processes={os.getpid(): ENGINE}),
        set_to(card, sm_mhz=1500, celsius=71, busy_percent=100, reasons=capped),
        set_to(card, sm_mhz=1700, celsius=66, busy_percent=80, milliwatts=500_000),
        set_to(card, reasons=capped | nvmlClocksEventReasonHwThermalSlowdown),
    )
    assert seen == GpuState(
        index=0,
        readings=4,
        sm_clock_hz=1.7e9,
        memory_clock_hz=3.201e9,
        power_w=400.0,
        temperature_c=71.0,
        utilisation=0.875,
        throttled={"hardware-thermal": 0.25, "power-cap": 0.75},
        others_bytes=0,
    )


def test_processes_that_are_not_ours_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card()
    pretend(monkeypatch, card)
    found = Gpus.of([side()])
    ours = {os.getpid(): ENGINE}
    (seen,) = watched(
        found,
        set_to(card, used=ENGINE, processes=ours),
        set_to(card, processes=ours | {1: 2 * GIB}),
        set_to(card, processes=ours | {1: 5 * GIB, 2: GIB}),
        set_to(card, processes=ours),
    )
    assert seen.others_bytes == 6 * GIB
    (untold,) = watched(found, set_to(card, processes=ours | {1: None}))
    assert untold.others_bytes is None


@pytest.mark.parametrize("listed", [{}, {4711: ENGINE}])
def test_a_container_that_shows_no_process_of_ours_tells_what_was_held_before(listed, monkeypatch):
    """Its list is empty, or has numbers of the world outside, in which ours mean nothing."""
    monkeypatch.setattr(machine_state, "_our_processes", lambda: frozenset({77}))
    card = Card(used=3 * GIB)
    pretend(monkeypatch, card)
    found = Gpus.of([side()])
    (seen,) = watched(found, set_to(card, used=3 * GIB + ENGINE, processes=listed))
    assert seen.others_bytes == 3 * GIB


def test_a_gpu_without_an_engine_of_ours_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, idle = Card(), Card(uuid="GPU-2", used=9 * GIB)
    pretend(monkeypatch, idle, busy)
    found = Gpus.of([side()])
    (seen,) = watched(found, set_to(busy, used=ENGINE))
    assert (seen.index, seen.readings) == (1, 1)


def test_a_gpu_that_tells_nothing_gives_nothing_but_its_readings(monkeypatch) -> None:
    card = Card()
    library = pretend(monkeypatch, card)
    asked = {name for name in vars(type(library)) if name.startswith("nvmlDeviceGet")}
    devices = nvidia.devices()
    card.refuses = frozenset(asked | {"nvmlDeviceGetMemoryInfo_v2"})
    with nvidia.gauge(devices) as read:
        found = Gpus(devices, read())
    assert watched(found, lambda: None) == (GpuState(0, 1),)


def test_a_driver_that_goes_away_ends_the_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Card()
    library = pretend(monkeypatch, card)
    found = Gpus.of([side()])

    def lost() -> None:
        def fail(handle: Card) -> int:
            raise NVMLError(NVML_ERROR_GPU_IS_LOST)

        library.nvmlDeviceGetPowerUsage = fail

    (seen,) = watched(found, set_to(card, used=ENGINE), lost, lambda: None)
    assert seen.readings == 1
    assert library.open == 0


def test_the_thread_reads_between_start_and_close_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_state, "PERIOD_S", 0.001)
    monkeypatch.setattr("hybridwatch.measurement.machine_state.kernel_seconds", lambda: (0.01,) * 5)
    card = Card()
    library = pretend(monkeypatch, card)
    watch = Watch(Gpus.of([side()]))
    thread = watch._gpus._thread
    card.used = ENGINE
    watch.start()
    while len(watch._gpus._readings) < 2:  # the second began after the change
        assert thread is not None
        assert thread.is_alive()
    (seen,) = watch.close().gpus
    assert seen.readings >= 1
    watch.stop()
    assert thread is not None
    assert not thread.is_alive()
    assert library.open == 0


def test_what_was_read_before_the_trial_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybridwatch.measurement.machine_state.kernel_seconds", lambda: (0.01,) * 5)
    watch = Watch()
    watch._gpus._readings.append(())
    watch.start()
    assert watch._gpus._readings == []


def test_without_gpus_there_is_no_thread_and_nothing_to_tell(monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.measurement.machine_state.kernel_seconds", lambda: (0.01,) * 5)
    watch = Watch()
    watch.start()
    assert watch._gpus._thread is None
    assert watch.close().gpus == ()


def test_testbed_of_gpus_is_named_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = probe_testbed()
    assert (plain.gpus, plain.driver, plain.gpu_memory_bytes) == ((), None, ())
    pretend(monkeypatch, Card(), Card(uuid="GPU-2"))
    testbed = probe_testbed(nvidia.devices())
    assert testbed.id.startswith(f"nvidia-h200-x2-{plain.cores}c-")
    assert testbed.gpus == ("NVIDIA H200", "NVIDIA H200")
    assert (testbed.driver, testbed.cuda) == ("570.133.20", "12.8")
    assert testbed.gpu_memory_bytes == (141 * GIB, 141 * GIB)
    assert testbed.gpu_power_limits_w == (700.0, 700.0)
    assert testbed.cpu_model == plain.cpu_model


def test_a_host_of_its_own_is_a_testbed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    alike = probe_testbed()
    monkeypatch.setenv(HOST_VARIABLE, "Epyc 3")
    own = probe_testbed()
    assert own.id == f"{alike.id}-epyc-3"
    assert replace(own, id=alike.id) == alike


def test_another_gpu_is_another_testbed_and_another_driver_is_not(monkeypatch) -> None:
    ids = []
    for card in (Card(), Card(memory=80 * GIB), Card(limit_milliwatts=500_000), Card(name="L4")):
        pretend(monkeypatch, card)
        ids.append(probe_testbed(nvidia.devices()).id)
    assert len(set(ids)) == 4
    library = pretend(monkeypatch, Card())
    monkeypatch.setattr(library, "nvmlSystemGetDriverVersion", lambda: "580.1")
    newer = probe_testbed(nvidia.devices())
    assert (newer.id, newer.driver) == (ids[0], "580.1")


def test_a_limit_that_is_not_told_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    mute = Card(uuid="GPU-2", refuses=frozenset({"nvmlDeviceGetEnforcedPowerLimit"}))
    pretend(monkeypatch, Card(), mute)
    assert probe_testbed(nvidia.devices()).gpu_power_limits_w == ()


def test_the_id_of_a_machine_without_gpus_is_what_it_always_was(monkeypatch) -> None:
    """As in the records of this repository."""
    monkeypatch.setattr("hybridwatch.measurement.testbed._cpu_model", lambda: "AMD EPYC")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    memory = SimpleNamespace(total=25276502016)
    monkeypatch.setattr("hybridwatch.measurement.testbed.psutil.virtual_memory", lambda: memory)
    assert probe_testbed().id == "amd-epyc-2c-ecb3ae"
