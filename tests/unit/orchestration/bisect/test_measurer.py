"""What a measurement is called when it gives no number."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.errors import BuildError, EngineError, LateEngineError
from hybridwatch.metrics import find_metric
from hybridwatch.orchestration.bisect import measurer
from hybridwatch.orchestration.bisect.measurer import (
    Measurer,
    parse_contracts,
    render_timed,
    timed_outcome,
)
from hybridwatch.orchestration.bisect.question import ProbeOutcome, ProbeState
from hybridwatch.records.run import Failure, MachineState, Phase
from hybridwatch.scenarios.load import load_scenario
from tests.builders import a_run, noisy, with_failures

SCENARIOS = Path(__file__).parents[4] / "scenarios"
LOG = "INFO up\nRuntimeError: CUDA error: an illegal memory access\nEngineDeadError: it died\n"


@pytest.fixture
def measured(monkeypatch):
    """Measures contracts with a session that ends in an error."""
    scenario = load_scenario(SCENARIOS / "smoke" / "padded-graph-rows.toml", SCENARIOS)

    def of(error):
        def run(_request):
            raise error

        monkeypatch.setattr(measurer, "run_session", run)
        monkeypatch.setattr(measurer, "make_ready", lambda *_: None)
        monkeypatch.setattr(measurer, "require_installed", lambda _build: None)
        return Measurer(scenario, Path(), print).contracts("cpu-0.27.1")

    return of


def test_engine_that_does_not_start_says_why(measured):
    found = measured(EngineError("engine ended", LOG))
    assert found.state is ProbeState.NOT_UP
    assert found.reason == "RuntimeError: CUDA error: an illegal memory access"


def test_engine_that_is_late_has_not_died(measured):
    found = measured(LateEngineError("the engine was not up after 600 s", LOG))
    assert found.state is ProbeState.NOT_HAD
    assert "not up after 600 s" in found.reason


def test_build_that_is_not_there_cannot_be_had(measured):
    assert measured(BuildError("no such\nbuild")).reason == "no such build"


def test_a_search_is_not_ended_by_what_its_scenario_says_of_releases(monkeypatch):
    monkeypatch.setattr(measurer, "require_installed", lambda _build: None)
    monkeypatch.setattr(
        measurer, "run_session", lambda _: (_ for _ in ()).throw(EngineError("", LOG))
    )
    path = SCENARIOS / "smoke" / "padded-graph-rows.toml"
    scenario = load_scenario(path, SCENARIOS).model_copy(update={"until": "0.2.0"})
    assert Measurer(scenario, Path(), print).contracts("cpu-0.27.1").state is ProbeState.NOT_UP


def test_worst_trial_counts():
    run = a_run({"contract.states_off": (0.0, 3.0, 1.0)})
    assert parse_contracts(run, 0, 1.0).counts == {"contract.states_off": 3.0}


def test_trial_that_failed_is_no_count_and_a_dead_engine_is_dead():
    run = a_run({"contract.states_off": (0.0, 0.0)})
    failed = with_failures(run, 0, Phase.CONTRACT, 1, "no occasion")
    assert (parse_contracts(failed, 0, 1.0).state, parse_contracts(failed, 0, 1.0).reason) == (
        ProbeState.NO_VALUE,
        "no occasion",
    )
    last = replace(failed.trials[-1], failure=Failure("it died", LOG, engine_died=True))
    died = parse_contracts(replace(failed, trials=(*failed.trials[:-1], last)), 0, 1.0)
    assert died.state is ProbeState.DIES
    assert "illegal memory access" in died.reason


def test_blocks_are_log_ratios():
    tpot = find_metric("tpot")
    run = a_run({"tpot": noisy(0.01, 5)}, {"tpot": noisy(0.011, 5, seed=2)})
    found = timed_outcome(run, tpot, 2.0)
    assert (found.state, found.metric, len(found.ratios)) == (ProbeState.MEASURED, "tpot", 5)
    assert found.block_minutes > 0


def test_a_block_of_a_duet_costs_the_start_of_its_engines():
    values = noisy(0.004, 5), noisy(0.0042, 5, seed=2)
    run = a_run(*({"duet_cpu_time": side} for side in values))
    assert timed_outcome(run, find_metric("duet_cpu_time"), 7.5).block_minutes == 1.5


@pytest.mark.parametrize(("scatter", "restless"), [(0.6, True), (0.001, False)])
def test_what_is_held_against_the_machine_is_kept_next_to_the_times(scatter, restless):
    rng = np.random.default_rng(2)
    run = a_run({"tpot": noisy(0.01, 10)}, {"tpot": noisy(0.011, 10, seed=2)})
    kernel = 0.01 * np.exp(scatter * rng.standard_normal(len(run.trials)))
    trials = tuple(
        replace(trial, surroundings=MachineState(0.01, float(seconds), 0.3))
        for trial, seconds in zip(run.trials, kernel, strict=True)
    )
    found = timed_outcome(replace(run, trials=trials), find_metric("tpot"), 2.0)
    assert any("restless" in doubt for doubt in found.doubts) is restless


@pytest.mark.parametrize(("ratios", "words"), [((0.05,), "in 1 block"), ((0.05,) * 2, "2 blocks")])
def test_blocks_are_counted_in_words(ratios, words):
    outcome = ProbeOutcome(state=ProbeState.MEASURED, metric="tpot", ratios=ratios)
    assert render_timed(outcome).endswith(words)
