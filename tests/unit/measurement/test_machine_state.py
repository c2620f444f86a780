"""The calibration kernel and what is seen of the machine; no assertion depends on its speed."""

import os
from pathlib import Path

import psutil
import pytest

from hybridwatch.measurement import machine_state
from hybridwatch.measurement.machine_state import REPETITIONS, Watch, kernel, kernel_seconds
from hybridwatch.system.guarded import processor_seconds


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


def test_clock_is_the_mean_of_the_processors_that_we_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "cpu MHz\t\t: 2000.000\ncpu MHz\t\t: 3000.000\ncpu MHz\t\t: 4000.000\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert machine_state._clock_hz() == 2_500_000_000
