"""How long the phases of a start took, and a start that is slow on purpose."""

import sys
from inspect import signature
from types import SimpleNamespace

import pytest
from hybridwatch_engine import start_times
from hybridwatch_engine.planted import FAULTS, slow_start
from hybridwatch_engine.start_times import phase, tell_start, timed_start


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only where a test says so."""
    now = SimpleNamespace(seconds=0.0)

    def rest(seconds):
        now.seconds += seconds

    fake = SimpleNamespace(perf_counter=lambda: now.seconds, sleep=rest)
    monkeypatch.setattr("hybridwatch_engine.start_times.time", fake)
    monkeypatch.setattr("hybridwatch_engine.planted.time", fake)
    monkeypatch.setattr(start_times, "SECONDS", {})
    return fake


@pytest.fixture
def engine(clock, monkeypatch):
    """A worker and a model runner that take 3 s to load and 5 s to capture, if they capture."""
    counter = SimpleNamespace(num_gpu_runner_capture_triggers=0)
    for name in ("vllm", "vllm.compilation", "vllm.compilation.counter"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(compilation_counter=counter))

    class Worker:
        def load_model(self):
            clock.sleep(3)

    class Runner:
        has_graphs = True

        def capture_model(self, *, profile_only=False):  # noqa: ARG002
            clock.sleep(5)
            counter.num_gpu_runner_capture_triggers += self.has_graphs
            return 7

    for module in ("start_times", "planted"):
        monkeypatch.setattr(f"hybridwatch_engine.{module}.worker_class", lambda: Worker)
    monkeypatch.setattr(
        "hybridwatch_engine.start_times.steps", lambda: ((Runner, "execute_model"),)
    )
    timed_start.cache_clear()
    yield SimpleNamespace(worker=Worker, runner=Runner)
    timed_start().remove()
    timed_start.cache_clear()


def a_runner(**compiled):
    config = SimpleNamespace(**{"compilation_time": 0.0, **compiled})
    return SimpleNamespace(vllm_config=SimpleNamespace(compilation_config=config))


def test_each_phase_is_timed_and_captures_add_up(engine, clock):
    timed_start().install()
    engine.worker().load_model()
    assert "profile_only" in signature(engine.runner().capture_model).parameters
    assert engine.runner().capture_model() == 7
    with phase("capture_time"):
        clock.sleep(1)
    told = tell_start(a_runner(compilation_time=2.0, encoder_compilation_time=0.5))
    assert told == {"weights_time": 3, "capture_time": 6, "compile_time": 2.5}


def test_an_engine_that_captures_and_compiles_nothing_has_no_such_phase(engine):
    engine.runner.has_graphs = False
    timed_start().install()
    engine.worker().load_model()
    engine.runner().capture_model()
    assert tell_start(a_runner()) == {"weights_time": 3}


def test_a_slow_start_is_seen_where_it_sleeps(engine):
    assert "slow-start-2" in FAULTS
    slow = slow_start(2.0)
    slow.install()
    timed_start().install()
    engine.worker().load_model()
    engine.runner().capture_model()
    assert tell_start(a_runner()) == {"weights_time": 5, "capture_time": 5}
    slow.remove()
