"""Times of an engine's start: one value for each start, judged where there are enough of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

import pytest

from hybridwatch.analysis.cause import Area, causes_in
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.subject import OneSide, list_sides, list_subjects
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.metrics import START_METRICS
from hybridwatch.records.run import MachineState, Phase, Run, Sample
from tests.builders import a_comparison, noisy

Times = Mapping[str, Sequence[float]]
BLOCKS = 2
"""On each start."""
SLEPT = 4.0
"""Seconds that a planted fault sleeps while the model is loaded."""


def start_times(starts: int, seed: int = 1, slept: float = 0.0) -> dict[str, tuple[float, ...]]:
    """What healthy starts of one build take, with 3 % of luck, and those of a slow one."""
    weights = tuple(one + slept for one in noisy(0.6, starts, 0.03, seed))
    whole = tuple(one + slept for one in noisy(18.0, starts, 0.02, seed + 1))
    return {
        "start_time": whole,
        "weights_time": weights,
        "capture_time": noisy(0.3, starts, 0.03, seed + 2),
        "first_request_time": noisy(0.15, starts, 0.03, seed + 3),
    }


def spread(old: Times, new: Times, looks: int = 1) -> Run:
    """Two blocks on each start; the first trial of a start has what is known of it."""
    starts = max(map(len, old.values()))
    tpot = [noisy(0.01, BLOCKS * starts, 0.003, seed) for seed in (8, 9)]
    again = 2 * BLOCKS * starts // looks if looks > 1 else None
    run = a_comparison(*({"tpot": values} for values in tpot), second_look=again)
    made = [count(), count()]
    trials = []
    for one in run.trials:
        at, first = divmod(next(made[one.side]), BLOCKS)
        told = {} if first else (old, new)[one.side]
        samples = (Sample(name, (values[at],)) for name, values in told.items())
        start = at if starts > 1 else None
        trials.append(replace(one, samples=(*one.samples, *samples), start=start))
    return replace(run, trials=tuple(trials))


def judged(run: Run) -> dict[str, Comparison]:
    return {c.metric.id: c for c in build_report(run).comparisons if c.metric.id != "tpot"}


@pytest.mark.parametrize("starts", [5, 6, 10])
def test_a_start_that_sleeps_is_red_in_what_sleeps_and_in_the_whole_and_nowhere_else(starts):
    found = judged(spread(start_times(starts), start_times(starts, 21, SLEPT)))
    red = {name for name, one in found.items() if one.verdict is Verdict.REGRESSION}
    assert red == {"start_time", "weights_time"}
    assert found["weights_time"].effect == pytest.approx(SLEPT / 0.6, rel=0.1)
    assert {one.family for one in found.values()} == {"start"}
    assert {one.trials_needed for one in found.values()} == {None}, "more trials would add none"


@pytest.mark.parametrize("seed", range(31, 71, 4))
@pytest.mark.parametrize("starts", [4, 6, 10])
def test_starts_of_one_build_are_never_red(seed, starts):
    found = judged(spread(start_times(starts, seed), start_times(starts, seed + 100)))
    assert not [one for one in found.values() if one.verdict.is_bad_news]


@pytest.mark.parametrize("starts", [1, 3])
def test_few_starts_have_values_and_no_verdict_however_far_they_are_apart(starts):
    run = spread(start_times(starts), start_times(starts, 21, 60.0))
    assert judged(run) == {}
    shown = {one.metric.id for one in list_subjects(*list_sides(run))}
    assert shown == {"tpot", *START_METRICS} - {"compile_time"}


def test_few_starts_are_told_to_be_few_and_which_option_gives_more():
    doubts = judged(spread(start_times(6), start_times(6, 21)))["start_time"].doubts
    assert [one for one in doubts if "--starts 10" in one]
    assert not [one for one in doubts if "--trials" in one or "left out" in one]


def test_the_other_metrics_are_judged_as_if_starts_had_not_been_timed():
    old, new = start_times(6), start_times(6, 21, SLEPT)
    run = spread(old, new)
    bare = replace(
        run,
        trials=tuple(
            replace(one, samples=tuple(s for s in one.samples if s.metric == "tpot"))
            for one in run.trials
        ),
    )
    tpot = next(c for c in build_report(run).comparisons if c.metric.id == "tpot")
    assert build_report(bare).comparisons == (tpot,)


def test_two_looks_at_three_starts_each_leave_it_open_and_at_six_call_it():
    few = judged(spread(start_times(6), start_times(6, 21, SLEPT), looks=2))
    assert {one.verdict for one in few.values()} <= {Verdict.INCONCLUSIVE, Verdict.EQUIVALENT}
    many = judged(spread(start_times(12), start_times(12, 21, SLEPT), looks=2))
    assert many["weights_time"].verdict is Verdict.REGRESSION


def test_a_noisy_machine_does_not_hold_it_back_as_the_work_of_a_step_says_nothing_of_a_start():
    run = spread(start_times(6), start_times(6, 21, SLEPT))
    kernels = noisy(0.01, len(run.trials), 0.4, 5)
    states = (MachineState(one, one) for one in kernels)
    trials = tuple(replace(t, surroundings=s) for t, s in zip(run.trials, states, strict=True))
    found = judged(replace(run, trials=trials))["weights_time"]
    assert found.verdict is Verdict.REGRESSION
    assert [one for one in found.doubts if "restless" in one], "it is said all the same"


@pytest.mark.parametrize("side", [0, 1])
def test_a_phase_that_one_side_lacks_is_neither_missing_nor_compared(side):
    old, new = sides = start_times(6), start_times(6, 21)
    del sides[side]["capture_time"]
    assert judged(spread(old, new)).keys() == sides[side].keys()


def test_a_record_from_before_starts_were_timed_leaves_them_out():
    run = spread(start_times(6), start_times(6, 21))
    before = a_comparison({"tpot": (9.0,) * 7}, id="22222222")
    for sides in ((OneSide(run, 0), OneSide(before, 0)), (OneSide(before, 0), OneSide(run, 1))):
        found = report_between(*sides).comparisons
        assert [one.metric.id for one in found] == ["tpot"]


def test_it_is_a_cause_of_its_own():
    report = build_report(spread(start_times(6), start_times(6, 21, SLEPT)))
    [cause] = causes_in(report)
    assert cause.area is Area.START
    assert cause_sentence(cause).startswith("The engine starts later: weights_time +")


def test_it_is_read_from_performance_trials():
    run = spread(start_times(1), start_times(1, 21))
    phases = {one.phase for one in list_subjects(*list_sides(run))}
    assert phases == {Phase.PERFORMANCE}
