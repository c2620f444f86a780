"""Sampling: which threads count, what a sampler that fails says, and py-spy at work."""

import subprocess
import sys
from pathlib import Path

import pytest

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement import profiling
from hybridwatch.measurement.profiling import find_sampler, parse_steps, sampling

STEP = "Worker.execute_model (vllm/v1/worker/gpu_worker.py:7)"
RAW = f"""\
process 1:"python -c a;thread (9);
b";thread (11);run (core.py:1);{STEP} 30
process 1:"python -c a;thread (9);
b";thread (11);run (core.py:1);get (queue.py:3) 12
process 1:"python";thread (12): "pool";worker (thread.py:5) 40
process 1:"python";process 2:"serve";thread (13);poll (app.py:8) 40
process 1:"python";process 3:"worker";thread (14): "MainThread";{STEP} 5
process 1:"python";process 3:"worker";thread (14): "MainThread";run (core.py:1);{STEP} 6
"""
BUSY = """
import sys
def execute_model():
    while True:
        sum(range(1000))
print("up", flush=True)
execute_model()
"""


def test_only_threads_that_make_steps_count_and_all_of_what_they_do() -> None:
    assert parse_steps(RAW) == {
        ("run (core.py:1)", STEP): 36,
        ("run (core.py:1)", "get (queue.py:3)"): 12,
        (STEP,): 5,
    }
    assert not parse_steps("")


def test_without_a_sampler_it_is_said_how_to_get_one(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(MeasurementError, match=r"py-spy: found none; .*'hybridwatch\[profile\]'"):
        find_sampler()


def test_a_sampler_that_may_not_attach_is_quoted(tmp_path: Path) -> None:
    sampler = tmp_path / "py-spy"
    sampler.write_text("#!/bin/sh\necho 'Permission Denied: try again with sudo' >&2\nexit 1\n")
    sampler.chmod(0o755)
    with (
        pytest.raises(MeasurementError, match="cannot sample process 1: Permission Denied: try"),
        sampling(str(sampler), 1, tmp_path / "stacks"),
    ):
        pytest.fail("it has not begun")


def test_a_sampler_that_never_answers_is_ended(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profiling, "_ANSWER_S", 0.1)
    sampler = tmp_path / "py-spy"
    sampler.write_text("#!/bin/sh\nexec sleep 100\n")
    sampler.chmod(0o755)
    with (
        pytest.raises(MeasurementError, match=r"cannot sample process 1: no answer within 0\.1 s"),
        sampling(str(sampler), 1, tmp_path / "stacks"),
    ):
        pytest.fail("it has not begun")


def test_a_process_of_ours_is_sampled(tmp_path: Path) -> None:
    file = tmp_path / "stacks"
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            with sampling(find_sampler(), process.pid, file):
                subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
        finally:
            process.kill()
    stacks = parse_steps(file.read_text())
    assert {stack[1].partition(" ")[0] for stack in stacks} == {"execute_model"}
