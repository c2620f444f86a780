"""A dead or hung engine is a failed trial with its log, and the next trial gets a new engine."""

import signal

import psutil
import pytest

from hybridwatch.engine.builds import parse_label
from hybridwatch.engine.launch import Launch
from hybridwatch.engine.server import EngineServer
from hybridwatch.errors import EngineError
from hybridwatch.home import home
from hybridwatch.measure import bench as bench_module
from hybridwatch.measure import load
from hybridwatch.measure.bench import Bench
from hybridwatch.measure.phase import measure
from hybridwatch.measure.plan import PlannedTrial
from hybridwatch.measure.session import Session, SessionRequest
from hybridwatch.record.run import Phase
from tests.engine.conftest import BUILD, HEALTHY

pytestmark = pytest.mark.engine


def workers() -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "VLLM::" in " ".join(process.cmdline()) + process.name()
    ]


def wait_briefly(engine):
    """Wait seconds for an engine that will not answer, where a user's run waits half a minute."""
    for line in engine.control._lines:
        line._http.timeout = 5.0


@pytest.fixture
def trial(bench, scenario, sides, tmp_path, monkeypatch):
    """Makes one contract trial of the healthy side, as a session does, with short patience."""
    monkeypatch.setattr(load, "LOAD_TIMEOUT_S", 15.0)
    session = Session(SessionRequest(scenario, sides, bench.models, lambda _: None), tmp_path)
    return lambda: session._trials(bench, [PlannedTrial(Phase.CONTRACT, HEALTHY)])[0]


def test_killed_engine_is_a_failed_trial_and_the_next_one_works(bench, trial, monkeypatch):
    bench.make_ready(HEALTHY)

    def kill_then_measure(phase_, station):
        wait_briefly(station.engine)
        for worker in workers():
            worker.send_signal(signal.SIGKILL)
        return measure(phase_, station)

    with monkeypatch.context() as patched:
        patched.setattr("hybridwatch.measure.session.measure", kill_then_measure)
        failed = trial()
    assert failed.failure is not None
    assert failed.samples == ()
    assert "ERROR" in failed.failure.log_tail or "died" in failed.failure.log_tail
    assert trial().failure is None


@pytest.mark.last
def test_engine_whose_guard_and_server_are_killed_is_gone(bench):
    bench.make_ready(HEALTHY)
    cores, here = workers(), psutil.Process()
    assert cores
    above = {process for core in cores for process in core.parents()}
    ours = (above & set(here.children(recursive=True))) - set(cores)
    # The guard first: while it lives it ends what the server leaves behind.
    for process in sorted(ours, key=psutil.Process.create_time):
        process.kill()
    _, left = psutil.wait_procs(cores, timeout=30)
    # Not every machine's first process takes the exit status of what is left to it.
    assert [one.pid for one in left if one.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.last
def test_hung_engine_is_a_failed_trial_within_the_limit(bench, trial, monkeypatch):
    bench.make_ready(HEALTHY)

    def stop_then_measure(phase_, station):
        monkeypatch.setattr("hybridwatch.measure.waves.REQUEST_TIMEOUT_S", 5.0)
        wait_briefly(station.engine)
        for worker in workers():
            worker.send_signal(signal.SIGSTOP)
        return measure(phase_, station)

    monkeypatch.setattr("hybridwatch.measure.session.measure", stop_then_measure)
    failed = trial()
    assert failed.failure is not None
    assert failed.duration_s < 300  # the limits of a request and of the control, and a slow machine
    assert workers() == []


def test_engine_that_keeps_dying_is_not_started_for_ever(scenario, sides, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_module, "MAX_STARTS", 0)
    with (
        Bench(scenario, sides, home() / "models", tmp_path, print) as bench,
        pytest.raises(EngineError, match="died again"),
    ):
        bench.engine(HEALTHY)


def test_engine_that_cannot_start_says_why(scenario, tmp_path):
    spec = parse_label(BUILD).spec
    empty = tmp_path / "no-model"
    empty.mkdir()
    launch = Launch(
        python=spec.interpreter,
        model=empty,
        served_name="none",
        engine=scenario.engine,
        graph_replay=False,
        fixes={},
        environment=spec.env,
        flags={},
    )
    with pytest.raises(EngineError, match="ended while starting") as caught:
        EngineServer(launch, tmp_path / "log")
    assert "no-model" in caught.value.log_tail
