"""Curves of made-up engines: which are told apart, where they cross, and what is not said.

Controls of a sweep on made-up curves.
"""

from dataclasses import replace

import pytest

from hybridwatch.analysis.control import ControlKind, same_curve_control, slow_control
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.records.run import MachineState, Phase
from hybridwatch.scenarios.load import load_scenario
from hybridwatch.system.home import home
from tests.builders import with_failures
from tests.curves import LOADS, a_swept_run, even, slower, tilted, tradeoff_in


def area_in(report):
    return next(one for one in report.comparisons if one.metric.id == "curve_area")


def test_one_curve_twice_is_equivalent_and_no_side_is_better_anywhere():
    report = build_report(a_swept_run(even, even))
    assert area_in(report).verdict is Verdict.EQUIVALENT
    assert tradeoff_in(report).stretches == ()
    assert tradeoff_in(report).crossings == ()
    assert [point.load for point in tradeoff_in(report).baseline.points] == list(LOADS)


def test_steps_that_last_six_percent_longer_are_a_regression_on_the_whole_curve():
    report = build_report(a_swept_run(even, slower(0.06)))
    area = area_in(report)
    assert area.verdict is Verdict.REGRESSION
    assert area.effect == pytest.approx(1 / 1.06 - 1, abs=0.015)
    assert {stretch.better for stretch in tradeoff_in(report).stretches} == {"baseline"}
    assert tradeoff_in(report).crossings == ()


def test_curves_cross_where_the_better_side_changes_and_the_area_need_not_move():
    report = build_report(a_swept_run(even, tilted))
    assert area_in(report).verdict is not Verdict.REGRESSION
    few, many = tradeoff_in(report).stretches[-1], tradeoff_in(report).stretches[0]
    assert (many.better, few.better) == ("baseline", "contender")
    ((low, high),) = tradeoff_in(report).crossings
    lowest, highest = tradeoff_in(report).common or (0.0, 0.0)
    assert lowest < low <= high < highest
    # Both paces are equal under 4.5 requests, where a user has 1 / (0.008 * 2.125) tokens a second.
    assert low < 1 / (0.008 * 2.125) < high


def test_curves_of_a_duet_are_compared_alike_and_say_whose_seconds_they_count():
    report = build_report(a_swept_run(even, slower(0.06), duet=True))
    (area,) = report.comparisons
    assert (area.metric.id, area.verdict) == ("duet_curve_area", Verdict.REGRESSION)
    found = tradeoff_in(report)
    assert {stretch.better for stretch in found.stretches} == {"baseline"}
    assert (found.baseline.clock, found.contender.clock) == ("processor", "processor")
    same = build_report(a_swept_run(even, even, duet=True))
    assert [one.verdict for one in same.comparisons] == [Verdict.EQUIVALENT]
    assert tradeoff_in(same).stretches == ()


def test_curves_are_compared_where_both_sides_were():
    run = a_swept_run(even, slower(0.3), noise=0.0)
    found = tradeoff_in(build_report(run))
    left, right = found.baseline.points, found.contender.points
    assert found.common == (left[-1].interactivity.middle, right[0].interactivity.middle)


def test_one_trial_that_went_astray_takes_no_place_from_the_others():
    run = a_swept_run(even, slower(0.25), trials=12)
    astray = a_swept_run(slower(3.0), trials=1).trials[0].curve
    trials = tuple(
        replace(trial, curve=astray) if trial.index == 4 else trial for trial in run.trials
    )
    found = tradeoff_in(build_report(replace(run, trials=trials)))
    low, high = found.common or (0.0, 0.0)
    assert {stretch.better for stretch in found.stretches} == {"baseline"}
    # Its block is left out; eleven are enough.
    assert sum(one.high - one.low for one in found.stretches) > 0.8 * (high - low)


def test_a_place_that_few_trials_reach_is_called_by_none():
    run = a_swept_run(even, slower(0.25), trials=10)
    astray = a_swept_run(slower(3.0), trials=1).trials[0].curve
    trials = tuple(
        replace(trial, curve=astray) if trial.index < 4 else trial for trial in run.trials
    )
    # Eight blocks are left, one less than it takes.
    assert tradeoff_in(build_report(replace(run, trials=trials))).stretches == ()


def test_curves_that_share_no_interactivity_are_not_compared():
    report = build_report(a_swept_run(even, slower(9.0)))
    assert tradeoff_in(report).common is None
    assert tradeoff_in(report).stretches == ()
    assert area_in(report).verdict is Verdict.REGRESSION


def middle(spread):
    assert spread is not None
    return spread.middle


def restless(run):
    """The same run, its calibration kernel slow in every other trial of the contender."""
    return replace(
        run,
        trials=tuple(
            replace(trial, surroundings=MachineState(0.01, 0.01 * (1 + (trial.index % 4 == 1))))
            for trial in run.trials
        ),
    )


def test_on_a_restless_machine_no_side_is_called_better():
    report = build_report(restless(a_swept_run(even, slower(0.25))))
    assert area_in(report).restless
    assert tradeoff_in(report).stretches == ()


def test_a_run_that_swept_nothing_has_no_curves():
    run = a_swept_run(even, even)
    bare = replace(run, trials=tuple(replace(trial, curve=None) for trial in run.trials))
    assert build_report(bare).tradeoff is None


def test_too_few_blocks_call_no_side_better():
    # Two-sided, eight blocks reach 2 / 2^8, which is not below the seventh part of 0.05.
    assert tradeoff_in(build_report(a_swept_run(even, slower(0.25), trials=8))).stretches == ()
    assert tradeoff_in(build_report(a_swept_run(even, slower(0.25), trials=9))).stretches


def test_a_band_holds_the_middle_of_the_trials():
    points = tradeoff_in(build_report(a_swept_run(even, even, noise=0.05))).baseline.points
    for point in points:
        assert point.throughput.low < point.throughput.middle < point.throughput.high


def test_goodput_falls_beyond_the_load_that_keeps_the_objective():
    found = tradeoff_in(build_report(a_swept_run(even, slower(0.5), noise=0.0)))
    goodput = [middle(point.goodput) for point in found.baseline.points]
    # 24 ms a token under eight requests keep 30 ms, but their first token takes 96 ms of 100.
    assert goodput == [pytest.approx(p.throughput.middle / 32) for p in found.baseline.points]
    assert middle(found.contender.points[-1].goodput) == 0.0
    best = [side.best_goodput for side in (found.baseline, found.contender)]
    assert [point.load for point in best if point is not None] == [8, 4]


def test_without_an_objective_or_a_driver_nothing_is_made_up():
    found = tradeoff_in(build_report(a_swept_run(even, even, slo={}))).baseline
    assert {point.goodput for point in found.points} == {None}
    assert {point.joules_per_token for point in found.points} == {None}
    assert found.best_goodput is None
    told = tradeoff_in(build_report(a_swept_run(even, even, joules=2.0))).baseline
    assert [middle(point.joules_per_token) for point in told.points] == [2.0, 1.0, 0.5, 0.25]


ROOT = home() / "scenarios"
SCENARIO = load_scenario(ROOT / "curated" / "sweep-concurrency.toml", ROOT)


def test_a_slow_step_is_distinguished_and_the_fault_is_named():
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
