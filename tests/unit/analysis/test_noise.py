"""What earlier runs teach about two runs."""

from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.noise import FEWEST_RUNS, REACH, learned_noise, noise_between
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.records.run import Run
from tests.builders import CONTENDER, a_run, noisy


def run_at(level: float, number: int = 0, **changes) -> Run:
    """A run of one build whose trials are calm about a level of their own."""
    run = a_run({"tpot": noisy(level, 10, 0.002, number + 1)})
    return replace(run, id=f"{number:08x}", **changes)


def wandering(runs: int = 24, spread: float = 0.05) -> list[Run]:
    levels = np.exp(np.random.default_rng(3).normal(0, spread, runs))
    return [run_at(float(level), number) for number, level in enumerate(levels)]


def compared(base: Run, cont: Run, history: list[Run]) -> Comparison:
    sides = OneSide(base, 0), OneSide(cont, 0)
    noise = noise_between([OneSide(run, 0) for run in history], *sides)
    (found,) = report_between(*sides, Terms(noise=noise)).comparisons
    return found


def test_noise_of_plain_drift_and_steps() -> None:
    rng = np.random.default_rng(1)
    plain = np.exp(rng.normal(0, 0.04, 200))
    drifting = plain * np.linspace(1, 2, 200)
    stepping = plain * np.repeat((1.0, 1.5, 0.8, 2.0), 50)
    spiky = plain * np.where(rng.random(200) < 0.05, 1.5, 1.0)
    for series in (plain, drifting, stepping, spiky):
        assert learned_noise(series.tolist()) == pytest.approx(0.04, rel=0.2)
    assert np.std(np.log(stepping)) > 0.2  # what a plain standard deviation would have learned


def test_nothing_is_learned_from_too_little_or_from_no_numbers() -> None:
    assert learned_noise((1.0,) * (FEWEST_RUNS - 1)) is None
    assert learned_noise((1.0,) * FEWEST_RUNS) == 0.0
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        assert learned_noise((1.0,) * FEWEST_RUNS + (bad,)) is None


def test_a_change_within_the_wandering_of_runs_is_no_regression() -> None:
    base, cont = run_at(1.0, 100), run_at(1.06, 101)
    trusting = report_between(OneSide(base, 0), OneSide(cont, 0)).comparisons[0]
    assert trusting.verdict is Verdict.INCONCLUSIVE
    found = compared(base, cont, wandering())
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.noise is not None
    assert 0.025 < found.noise < 0.1
    assert found.relevance == REACH * found.noise
    assert any("scatter by" in doubt for doubt in found.doubts)


def test_a_change_beyond_it_still_is() -> None:
    assert compared(run_at(1.0, 100), run_at(1.5, 101), wandering()).verdict is Verdict.REGRESSION


def test_quiet_runs_leave_the_margin_and_raise_no_doubt() -> None:
    found = compared(run_at(1.0, 100), run_at(1.06, 101), wandering(spread=0.002))
    assert found.verdict is Verdict.REGRESSION
    assert found.relevance == found.metric.margin
    assert not any("scatter by" in doubt for doubt in found.doubts)


def test_only_runs_of_the_same_thing_teach() -> None:
    base, cont = run_at(1.0, 100), run_at(1.06, 101)
    scenario = replace(base.scenario, digest="e" * 64)
    testbed = replace(base.testbed, id="other")
    for changes in ({"scenario": scenario}, {"testbed": testbed}, {"builds": (CONTENDER,)}):
        others = [replace(run, **changes) for run in wandering()]
        assert compared(base, cont, others).noise is None
    themselves = [replace(run, id=base.id) for run in wandering()]
    assert compared(base, cont, themselves).noise is None


def test_sides_of_one_run_need_no_history() -> None:
    run = a_run({"tpot": noisy(1.0, 12, 0.01)}, {"tpot": noisy(1.08, 12, 0.01, 2)})
    noise = {("tpot", "median"): 0.5}
    (found,) = report_between(OneSide(run, 0), OneSide(run, 1), Terms(noise=noise)).comparisons
    assert found.noise is None
    assert found.verdict is Verdict.REGRESSION


def test_equal_runs_are_called_worse_about_once_in_twenty() -> None:
    rng = np.random.default_rng(9)
    red = 0
    for _ in range(4000):
        *history, base, cont = rng.normal(0, 0.05, FEWEST_RUNS + 2)
        learned = learned_noise(np.exp(history).tolist())
        assert learned is not None
        red += np.expm1(cont - base) > max(0.03, REACH * learned)
    assert red <= 0.06 * 4000
