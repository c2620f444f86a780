"""A dead or hung engine is a failed trial with its log, and the next trial gets a new engine."""

import signal

import pytest

from hybridwatch.engines.builds import parse_label
from hybridwatch.engines.launch import Launch
from hybridwatch.engines.server import EngineServer
from hybridwatch.errors import EngineError
from hybridwatch.measurement import engine_pool as bench_module
from hybridwatch.measurement import load
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.phase import measure
from hybridwatch.measurement.plan import PlannedTrial
from hybridwatch.measurement.session import Session
from hybridwatch.measurement.session_request import SessionRequest
from hybridwatch.records.run import Phase
from hybridwatch.system.home import home
from tests.engine.conftest import BUILD, HEALTHY
from tests.engine.processes import cores

pytestmark = [
    pytest.mark.engine,
    pytest.mark.long("an engine that dies or hangs is started again"),
]


def wait_briefly(engine):
    """Wait seconds for an engine that will not answer, where a user's run waits half a minute."""
    for line in engine.control._lines:
        line._http.timeout = 5.0


@pytest.fixture
def trial(pool, scenario, sides, tmp_path, monkeypatch):
    """Makes one contract trial of the healthy side, as a session does, with short patience."""
    monkeypatch.setattr(load, "LOAD_TIMEOUT_S", 15.0)
    session = Session(SessionRequest(scenario, sides, pool.models, lambda _: None), tmp_path)
    session._pool = pool
    return lambda: session._trials([PlannedTrial(Phase.CONTRACT, HEALTHY)])[0]


def test_killed_engine_is_a_failed_trial_and_the_next_one_works(pool, trial, monkeypatch):
    pool.make_ready(HEALTHY)

    def kill_then_measure(phase_, trial):
        wait_briefly(trial.engine)
        for worker in cores():
            worker.send_signal(signal.SIGKILL)
        return measure(phase_, trial)

    with monkeypatch.context() as patched:
        patched.setattr("hybridwatch.measurement.session.measure", kill_then_measure)
        failed = trial()
    assert failed.failure is not None
    assert failed.samples == ()
    assert "ERROR" in failed.failure.log_tail or "died" in failed.failure.log_tail
    assert trial().failure is None


@pytest.mark.last
def test_hung_engine_is_a_failed_trial_and_is_ended(pool, trial, monkeypatch):
    pool.make_ready(HEALTHY)

    def stop_then_measure(phase_, trial):
        monkeypatch.setattr("hybridwatch.measurement.waves.REQUEST_TIMEOUT_S", 5.0)
        wait_briefly(trial.engine)
        for worker in cores():
            worker.send_signal(signal.SIGSTOP)
        return measure(phase_, trial)

    monkeypatch.setattr("hybridwatch.measurement.session.measure", stop_then_measure)
    failed = trial()
    assert failed.failure is not None
    assert cores() == []


def test_engine_that_keeps_dying_is_not_started_for_ever(scenario, sides, tmp_path, monkeypatch):
    monkeypatch.setattr(bench_module, "MAX_STARTS", 0)
    with (
        EnginePool(scenario, sides, home() / "models", tmp_path, print) as pool,
        pytest.raises(EngineError, match="died again"),
    ):
        pool.engine(HEALTHY)


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
