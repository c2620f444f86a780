"""Own times of the phases of a step, on a runner whose every part takes a known time."""

from types import SimpleNamespace

import pytest
from hybridwatch_engine.probes import step_phases
from hybridwatch_engine.probes.step_phases import PHASES, StepPhasesProbe

WORK, IDLE = (SimpleNamespace(total_num_scheduled_tokens=count) for count in (3, 0))


class Runner:
    """Takes 1 s of its own in each part, but for the metadata that its draft builds: 10 s."""

    now = 0

    def take(self, seconds=1):
        Runner.now += seconds * 10**9

    def execute_model(self, _scheduled, dummy_run=False):  # noqa: ARG002 - as the engine calls it
        self.take()
        self.prepare()
        self.build()
        self.take()

    def prepare(self):
        self.take()

    def build(self, seconds=1):
        self.take(seconds)

    def sample_tokens(self):
        self.take()
        self.draft()

    def draft(self):
        self.take()
        self.build(10)
        self.take()


class OtherRunner:
    """Runs the model in its step, which takes 2 s."""

    def execute_model(self, _scheduled, dummy_run=False):  # noqa: ARG002 - as the engine calls it
        Runner.now += 2 * 10**9

    def sample_tokens(self):
        Runner.now += 10**9


@pytest.fixture
def probe(monkeypatch):
    parts = {"prepare": "prepare", "metadata": "build", "draft": "draft"}
    monkeypatch.setattr(
        step_phases,
        "phases_of_steps",
        lambda: {phase: ((Runner, name),) for phase, name in parts.items()},
    )
    monkeypatch.setattr(
        step_phases, "steps", lambda: ((Runner, "execute_model"), (OtherRunner, "execute_model"))
    )
    return StepPhasesProbe(clock=lambda: Runner.now)


def test_phases_of_a_step_are_their_own_times_and_add_up_to_it(probe):
    runner = Runner()
    probe.start()
    begin = Runner.now
    runner.execute_model(WORK)
    runner.sample_tokens()
    took = (Runner.now - begin) / 1e9
    told = probe.stop()["phases"]
    assert told == {
        "prepare": [1.0],
        "metadata": [11.0],
        "forward": [0.0],
        "sample": [0.0],
        "draft": [2.0],
        "rest": [3.0],
    }
    assert sum(seconds for (seconds,) in told.values()) == took


def test_what_is_no_step_is_not_timed(probe):
    runner = Runner()
    probe.start()
    runner.sample_tokens()  # of a step before
    runner.build()  # a dummy run
    runner.execute_model(IDLE)
    runner.execute_model(WORK, dummy_run=True)
    assert probe.stop() == {"phases": {phase: [] for phase in PHASES}}


def test_every_step_has_a_time_of_each_phase_and_a_second_start_begins_again(probe):
    runner = Runner()
    for steps in (3, 2):
        probe.start()
        for _ in range(steps):
            runner.execute_model(WORK)
        told = probe.stop()["phases"]
        assert {len(seconds) for seconds in told.values()} == {steps}
        assert told["prepare"] == [1.0] * steps


def test_a_probe_that_is_off_leaves_nothing_behind(probe):
    before = dict(vars(Runner)), dict(vars(OtherRunner))
    probe.start()
    probe.stop()
    assert (dict(vars(Runner)), dict(vars(OtherRunner))) == before


def test_a_step_that_fails_does_not_upset_the_next(probe, monkeypatch):
    def fail(*_):
        raise RuntimeError("planted")

    runner = Runner()
    monkeypatch.setattr(Runner, "prepare", fail)
    probe.start()
    with pytest.raises(RuntimeError, match="planted"):
        runner.execute_model(WORK)
    runner.build()  # outside any step again
    assert probe.stop()["phases"]["metadata"] == [0.0]


def test_a_runner_without_a_function_for_its_model_has_the_rest_of_a_step_as_forward(probe):
    runner = OtherRunner()
    probe.start()
    runner.execute_model(WORK)
    runner.sample_tokens()
    told = probe.stop()["phases"]
    assert (told["forward"], told["rest"]) == ([2.0], [1.0])
