"""SIGINT at any moment of the timed phase leaves no process, and no record that reads as whole."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from hybridwatch.measurement.session_request import is_stopped
from hybridwatch.records.store import list_records, read_run
from tests.e2e.short_home import SCENARIO, make_short_home
from tests.engine.conftest import BUILD
from tests.waiting import wait_until

_RUN = (sys.executable, "-m", "hybridwatch", "run", SCENARIO, "--build", BUILD)

MARK = "HYBRIDWATCH_TEST_RUN"
"""Inherited by every process of a run, wherever it has gone."""


@dataclass(frozen=True)
class Moment:
    """When a run is interrupted.

    Attributes:
        step: While this question to a pretended engine or its client has no answer, counted from
            the first timed load on.
        delay_s: Without a step: so long after the first timed load has begun.
        group: Whether the whole process group gets the signal, as from Ctrl-C, or the run alone.
        signal: Which it gets.
    """

    step: int | None = None
    delay_s: float = 0.0
    group: bool = False
    signal: int = signal.SIGINT


def marked(value: str) -> list[psutil.Process]:
    """Every process of a run but those that have ended already."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def interrupt(home: Path, results: Path, moment: Moment) -> tuple[int, str]:
    """Start a run, send it a signal; gives status and output when none of its processes is left."""
    name = uuid.uuid4().hex
    log = results.with_name(f"{results.name}.{name}.log")
    steps = results.with_name(f"{results.name}.{name}.steps")
    steps.mkdir()
    run = _start(home, results, moment, name, log, steps)
    try:
        _await(run, log, moment, steps)
        assert len(marked(name)) >= 4, log.read_text()
        (os.killpg if moment.group else os.kill)(run.pid, moment.signal)
        wait_until(lambda: run.poll() is not None, lambda: f"its end: {log.read_text()}")
        wait_until(
            lambda: not marked(name),
            lambda: f"the end of {[process.cmdline() for process in marked(name)]}",
        )
        return run.returncode, log.read_text()
    finally:
        for process in marked(name):
            process.kill()
        run.kill()
        run.wait()


def _start(
    home: Path, results: Path, moment: Moment, name: str, log: Path, steps: Path
) -> "subprocess.Popen[bytes]":
    variables = {MARK: name, "HYBRIDWATCH_HOME": str(home)}
    if moment.step is not None:
        variables |= {"PRETEND_STEPS": str(steps), "PRETEND_LAST_STEP": str(moment.step)}
    with log.open("w") as file:
        return subprocess.Popen(
            [*_RUN, "--results", str(results)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
            # A suite that was started in the background has been told to overhear SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )


def _await(run: "subprocess.Popen[bytes]", log: Path, moment: Moment, steps: Path) -> None:
    def has_come() -> bool:
        assert run.poll() is None, log.read_text()
        if moment.step is not None:
            return (steps / "last").exists()
        return "] performance" in log.read_text()

    wait_until(has_come, log.read_text)
    if moment.step is None:
        time.sleep(moment.delay_s)  # for tries at random, which are slow, and print their seed


MANY = 50
"""Tries before a release."""

TRY_S = 120
"""More than a try takes on a busy machine."""

PRETENDED_S, REAL_S = 3.0, 14.0
"""A few trials long, warm-up and pauses between trials included."""

SEED = 20261123

LOAD, HELD, NEXT_LOAD, LATER_LOAD = 1, 35, 46, 226
"""Questions: a load to the client, a completion to the engine that is held, a load again, and one
after trials of both sides."""


def interrupt_at(folder, home, moments):
    """Interrupt a run of its own at each moment."""
    for moment in moments:
        status, said = interrupt(home, folder / "results", moment)
        assert status == 128 + signal.SIGINT, f"{moment}: {said}"
    kept = [read_run(path) for path in list_records(folder / "results")]
    assert [run.id for run in kept if not is_stopped(run)] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_tells_what_is_finished_and_how_it_goes_on(tmp_path, number):
    home = make_short_home(tmp_path / "home", pretended=True)
    status, said = interrupt(home, tmp_path / "results", Moment(LATER_LOAD, signal=number))
    assert status == 128 + signal.SIGINT, said
    (record,) = list_records(tmp_path / "results")
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert f"{SCENARIO}: stopped in performance; what was measured is in {record}" in lines
    assert any(line.startswith("output_throughput median ") for line in lines), said
    assert f"record: {record}" in lines
    assert not [line for line in lines if line.startswith("trial ")]
    going_on, interrupted = lines[-2:]
    assert going_on.startswith("go on with: ")
    words = f"--build {BUILD} --results {tmp_path / 'results'} --resume"
    assert going_on.endswith(f" run {SCENARIO} {words}")
    assert interrupted == "hybridwatch: interrupted"


def at_random(within_s):
    """The run alone and its whole process group in turn, each at a moment of its own."""
    print(f"seed {SEED}")  # noqa: T201
    drawn = random.Random(SEED)
    return [
        Moment(delay_s=drawn.uniform(0, within_s), group=number % 2 == 1) for number in range(MANY)
    ]


def test_interrupted_session_leaves_nothing(tmp_path):
    home = make_short_home(tmp_path / "home", pretended=True)
    interrupt_at(tmp_path, home, [Moment(LOAD), Moment(HELD, group=True), Moment(NEXT_LOAD)])


@pytest.mark.slow
@pytest.mark.timeout(MANY * TRY_S)
def test_session_interrupted_often_leaves_nothing(tmp_path):
    home = make_short_home(tmp_path / "home", pretended=True)
    interrupt_at(tmp_path, home, at_random(PRETENDED_S))


def test_engine_that_is_deaf_to_sigterm_is_gone_in_time(tmp_path, monkeypatch):
    monkeypatch.setenv("PRETEND_DEAF", "1")
    home = make_short_home(tmp_path / "home", pretended=True)
    interrupt_at(tmp_path, home, [Moment(HELD)])


@pytest.mark.engine
@pytest.mark.slow  # test_story.py stops a real engine; a pretended one shows moments and ways
@pytest.mark.timeout(MANY * TRY_S)
def test_interrupted_performance_phase_leaves_nothing(tmp_path):
    home = make_short_home(tmp_path / "home")
    interrupt_at(tmp_path, home, at_random(REAL_S))
