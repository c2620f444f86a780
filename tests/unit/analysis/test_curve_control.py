"""Controls of a sweep on made-up curves."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.control import ControlKind, same_curve_control, slow_control
from hybridwatch.records.run import Phase
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home
from tests.builders import with_failures
from tests.curves import a_swept_run, even, slower, tilted

ROOT = home() / "scenarios"
SCENARIO = load_scenario(ROOT / "curated" / "sweep-concurrency.toml", ROOT)


def test_a_slow_step_is_told_apart_and_the_fault_is_named():
    found = slow_control(SCENARIO, a_swept_run(even, slower(0.06)), 0, 1)
    assert (found.ok, found.kind, found.fix) == (True, ControlKind.KNOWN_BAD, "slow-step")
    assert "regression" in found.detail


@pytest.mark.parametrize("contender", [even, slower(0.01), slower(-0.1)])
def test_a_curve_that_is_not_worse_misses_the_fault(contender):
    found = slow_control(SCENARIO, a_swept_run(even, contender), 0, 1)
    assert not found.ok


def test_equal_curves_are_equivalent_and_no_others():
    assert same_curve_control(SCENARIO, a_swept_run(even, even), 0, 1).ok
    for contender in (slower(0.06), slower(-0.06)):
        assert not same_curve_control(SCENARIO, a_swept_run(even, contender), 0, 1).ok


def test_not_settled_is_not_equivalent():
    found = same_curve_control(SCENARIO, a_swept_run(even, even, noise=0.2), 0, 1)
    assert not found.ok
    assert "inconclusive" in found.detail


def test_curves_that_cross_are_said_to():
    assert "cross 1 times" in slow_control(SCENARIO, a_swept_run(even, tilted), 0, 1).detail


def test_a_trial_that_failed_and_a_run_without_curves_prove_nothing():
    run = a_swept_run(even, even)
    assert not same_curve_control(SCENARIO, with_failures(run, 1, Phase.PERFORMANCE, 1), 0, 1).ok
    found = same_curve_control(SCENARIO, replace(run, trials=()), 0, 1)
    assert (found.ok, found.detail) == (False, "no curve was measured")
