"""SIGINT at any moment of the timed phase leaves no process, and no record that reads as whole."""

import random
import signal

import pytest

from hybridwatch.measurement.session import is_stopped
from hybridwatch.records.store import list_records, read_run
from tests.e2e.interruption import Moment, interrupt
from tests.e2e.short_home import SCENARIO, make_short_home
from tests.engine.conftest import BUILD

MANY = 50
"""Tries before a release."""

TRY_S = 120
"""More than a try takes on a busy machine."""

PRETENDED_S, REAL_S = 3.0, 14.0
"""A few trials long, warm-up and pauses between trials included."""

SEED = 20261123

LOAD, HELD, NEXT_LOAD = 1, 14, 21
"""Questions: a load to the client, a completion to the engine that is held, and a load again."""


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
    status, said = interrupt(home, tmp_path / "results", Moment(NEXT_LOAD + 4, signal=number))
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
