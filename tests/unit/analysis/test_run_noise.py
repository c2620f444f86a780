"""What earlier runs teach about two runs."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.run_noise import FEWEST_RUNS, REACH, learned_noise, noise_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.metrics import Metric, find_metric
from hybridwatch.records.run import Run
from tests.builders import CONTENDER, STARTED, a_run, noisy

TPOT = find_metric("tpot")


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


def noise_of(values, metric: Metric = TPOT) -> float | None:
    (found,) = learned_noise([(metric, list(values))])
    return found


def test_noise_of_normal_runs_is_about_their_deviation_whatever_level_they_had() -> None:
    rng = np.random.default_rng(1)
    plain = np.exp(rng.normal(0, 0.04, 30))
    changed = plain * np.repeat((1.0, 1.5), 15)
    assert noise_of(plain) == pytest.approx(0.04, rel=0.3)
    assert noise_of(changed) == pytest.approx(0.04, rel=0.3)
    assert np.std(np.log(changed)) > 0.15  # what a plain standard deviation would have learned


def test_noise_bounds_every_difference_seen_but_a_lasting_change() -> None:
    quiet = [*noisy(1.0, 29, 0.001)]
    for spike in (0, 14, 28):
        values = [*quiet[:spike], 1.4, *quiet[spike:]]
        noise = noise_of(values)
        assert noise is not None
        assert REACH * noise >= 0.38
    of_modes = noise_of(value * (1.06, 1.0)[at % 2] for at, value in enumerate(quiet))
    assert of_modes == pytest.approx(0.06 / REACH, rel=0.1)
    # A place where one of many orders has it so may be chance: two runs of 30 are no level.
    assert noise_of([*quiet[:-2], 1.4, 1.4]) == pytest.approx(0.4 / REACH, rel=0.05)
    assert noise_of([*quiet[:-4], *[1.4] * 4]) == pytest.approx(0.0, abs=0.002)


def test_a_loss_of_a_rate_is_bounded_by_a_smaller_fraction_than_a_longer_time() -> None:
    values = [1.0, 2.0] * 10
    assert noise_of(values) == pytest.approx(1.0 / REACH)
    assert noise_of(values, find_metric("output_throughput")) == pytest.approx(0.5 / REACH)


def test_metrics_of_a_report_share_what_one_of_them_did() -> None:
    quiet, other = noisy(1.0, 21, 0.01), noisy(1.0, 21, 0.01, seed=2)
    alone = noise_of(quiet)
    spiky = [*other[:-1], 1.5]
    shared, own = learned_noise([(TPOT, quiet), (find_metric("ttft"), spiky)])
    assert alone is not None
    assert own is not None
    assert shared is not None
    assert own > shared > 4 * alone
    # What stays within its margin cannot be red, and is not held against the others.
    tiny = [*[1.0, 1.0001] * 10, 1.02]
    assert learned_noise([(TPOT, quiet), (find_metric("ttft"), tiny)])[0] == alone


def test_nothing_is_learned_from_too_little_or_from_no_numbers() -> None:
    assert noise_of((1.0,) * (FEWEST_RUNS - 1)) is None
    assert noise_of((1.0,) * FEWEST_RUNS) == 0.0
    assert noise_of((1.0,) * FEWEST_RUNS + (1.1,)) is None  # most are the same, and one strays
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        assert noise_of((1.0,) * FEWEST_RUNS + (bad,)) is None


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


def test_a_baseline_that_is_off_excuses_what_it_makes_of_the_contender() -> None:
    quiet = wandering(spread=0.002)
    assert compared(run_at(1.0, 100), run_at(1.2, 101), quiet).verdict is Verdict.REGRESSION
    assert compared(run_at(0.8, 100), run_at(1.0, 101), quiet).verdict is Verdict.INCONCLUSIVE
    # Measured elsewhere it is no run of theirs.
    away = replace(run_at(0.8, 100), testbed=replace(run_at(1.0).testbed, id="other"))
    sides = OneSide(away, 0), OneSide(run_at(1.0, 101), 0)
    learned = noise_between([OneSide(run, 0) for run in quiet], *sides)
    assert learned["tpot", "median"] < 0.005


def test_a_contender_joins_the_runs_of_its_own_build_and_no_others() -> None:
    quiet = wandering(spread=0.002)
    slow = replace(run_at(1.2, 101), builds=(CONTENDER,))
    assert compared(run_at(1.0, 100), slow, quiet).verdict is Verdict.REGRESSION
    of_slow = [replace(run, builds=(CONTENDER,)) for run in quiet]
    assert compared(run_at(1.0, 100), slow, of_slow).verdict is Verdict.INCONCLUSIVE


def test_a_baseline_takes_its_place_in_time() -> None:
    """Measured before a lasting change, it is one of those before it."""

    def at(number: int, level: float) -> Run:
        return run_at(level, number, started_at=STARTED + timedelta(days=number))

    levels = [*noisy(1.0, 10, 0.002), *noisy(1.3, 12, 0.002, seed=2)]
    runs = [at(number, level) for number, level in enumerate(levels, 1)]
    old, new = at(0, 1.0), at(99, 1.3)
    assert compared(old, new, runs).noise == pytest.approx(0.002, abs=0.002)
