"""Times that changed are measured again, on new engines: only what both looks say is a change."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.judge import FALSE_DISCOVERY_RATE, FIRST_LEVEL
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.report import Terms, build_report, find_reason, report_between
from hybridwatch.analysis.subject import list_sides, split_looks
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.records.run import Failure, MachineState, Phase, Run
from tests.builders import Trials, a_comparison, noisy, with_failures
from tests.unit.analysis.test_noisy_machine import session

BLOCKS = 10
SAME, SLOWER, FASTER = 1.0, 1.08, 1 / 1.08


def timed(*effects: float, metrics: tuple[str, ...] = ("tpot",), seed: int = 1) -> Run:
    """One look after the other, each with its effect; the second, if there is one, is marked."""
    sides: list[dict[str, Trials]] = [{}, {}]
    for number, side in enumerate(sides):
        for place, metric in enumerate(metrics):
            looks = [
                noisy(effect**number, BLOCKS, 0.01, seed + 10 * (2 * place + number) + look)
                for look, effect in enumerate(effects)
            ]
            side[metric] = tuple(value for look in looks for value in look)
    again = 2 * BLOCKS if len(effects) > 1 else None
    return a_comparison(*sides, second_look=again)


def of(report: Report, metric: str = "tpot") -> Comparison:
    return next(c for c in report.comparisons if c.metric.id == metric)


def judged(*effects: float) -> Comparison:
    return of(build_report(timed(*effects)))


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ((SLOWER, SLOWER), Verdict.REGRESSION),
        ((FASTER, FASTER), Verdict.IMPROVEMENT),
        ((SLOWER, SAME), Verdict.INCONCLUSIVE),
        ((SAME, SLOWER), Verdict.INCONCLUSIVE),
        ((SLOWER, FASTER), Verdict.INCONCLUSIVE),
        ((FASTER, SAME), Verdict.INCONCLUSIVE),
        ((SAME, SAME), Verdict.EQUIVALENT),
        ((1.16, 0.999), Verdict.INCONCLUSIVE),
    ],
)
def test_a_change_must_show_in_both_looks(effects, verdict):
    """The larger p counts. Were it the smaller, or all blocks together, half of these were red."""
    assert judged(*effects).verdict is verdict


def test_all_blocks_together_would_be_red_where_the_second_look_is_not():
    run = timed(1.16, 0.999)
    assert of(build_report(replace(run, second_look=None))).verdict is Verdict.REGRESSION


def test_what_is_not_confirmed_says_so_in_plain_words():
    found = judged(SLOWER, SAME)
    (doubt,) = [one for one in found.doubts if one.startswith("The first 10 blocks said +")]
    assert "the second 10 blocks, on new engines, did not (" in doubt
    assert "measured again by itself" in doubt
    assert not [one for one in judged(SLOWER, SLOWER).doubts if one.startswith("The first")]


def test_p_is_the_larger_of_both_each_at_its_level():
    run = timed(1.05, 1.05)
    looks = split_looks(run)
    assert looks is not None
    first, second = (of(build_report(look)) for look in looks)
    found = of(build_report(run))
    assert found.p_value == max(first.p_value or 0, second.p_value or 0)
    scaled = (first.p_adjusted or 0) * FALSE_DISCOVERY_RATE / FIRST_LEVEL
    assert found.p_adjusted == found.p_holm == max(scaled, second.p_adjusted or 0)
    assert "Measured twice" in found.assumption


def test_effect_interval_and_blocks_are_of_both_looks():
    run = timed(SLOWER, SLOWER)
    whole = of(build_report(replace(run, second_look=None)))
    found = of(build_report(run))
    assert (found.effect, found.interval, found.pairs) == (whole.effect, whole.interval, 2 * BLOCKS)


def test_the_second_look_tests_only_what_the_first_has_named():
    """Others cost it nothing, and none of them is red by the second look alone."""
    run = timed(SLOWER, SLOWER, metrics=("tpot", "ttft", "e2el"))
    only = timed(SAME, SLOWER, metrics=("tpot", "ttft", "e2el"))
    assert {c.verdict for c in build_report(run).comparisons} == {Verdict.REGRESSION}
    assert Verdict.REGRESSION not in {c.verdict for c in build_report(only).comparisons}


@pytest.mark.parametrize(("slower", "verdict"), [(SLOWER, "regression"), (SAME, "equivalent")])
def test_a_second_look_that_failed_leaves_the_first_alone(slower, verdict):
    """Engines that die must not turn a change green."""
    run = timed(slower, SAME)
    trials = tuple(
        replace(one, failure=Failure("it died", ""), samples=())
        if one.index >= 2 * BLOCKS + 4
        else one
        for one in run.trials
    )
    found = of(build_report(replace(run, trials=trials)))
    assert found.verdict.value == verdict
    told = [one for one in found.doubts if "judged by the first alone" in one]
    assert bool(told) == (slower is SLOWER)


def test_a_count_that_repeats_in_each_look_and_differs_between_them_is_told():
    one_look = {"host_syncs_per_step": (3.0,) * BLOCKS}
    sides = [{"host_syncs_per_step": (3.0,) * BLOCKS + (4.0,) * BLOCKS} for _ in range(2)]
    more = {"host_syncs_per_step": (5.0,) * BLOCKS + (6.0,) * BLOCKS}
    same = a_comparison(*sides, second_look=2 * BLOCKS)
    other = a_comparison(sides[0], more, second_look=2 * BLOCKS)
    assert of(build_report(same), "host_syncs_per_step").verdict is not Verdict.REGRESSION
    assert of(build_report(other), "host_syncs_per_step").verdict is Verdict.REGRESSION
    assert find_reason(a_comparison(one_look, {"host_syncs_per_step": (5.0,) * BLOCKS})) == ""


def test_a_gate_whose_families_are_smaller_asks_for_both_looks_too():
    watched = tuple(f"acceptance_rate.position_{at}" for at in range(5))
    policy = Policy((Rule("acceptance_rate.*", action=Action.WATCH),))
    for effects, passes in (((SLOWER, SAME), True), ((SLOWER, SLOWER), False)):
        run = timed(*effects, metrics=("tpot",))
        noise = timed(SAME, SAME, metrics=watched, seed=9)
        trials = tuple(
            replace(one, samples=(*one.samples, *other.samples))
            for one, other in zip(run.trials, noise.trials, strict=True)
        )
        report = report_between(*list_sides(replace(run, trials=trials)), Terms(policy=policy))
        assert {family.name for family in report.families} == {"speed", "speed (watched)"}
        assert gate(report, policy).passed is passes


@pytest.mark.parametrize("work", [1.3, SAME])
def test_on_a_noisy_machine_the_processor_time_decides_in_both_looks(work):
    first, second = (
        session({"tpot": 1.3, "engine_cpu_time": effect}, blocks=20, seed=seed)
        for seed, effect in ((1, 1.3), (2, work))
    )
    trials = tuple(replace(one, index=at) for at, one in enumerate((*first.trials, *second.trials)))
    report = build_report(replace(first, trials=trials, second_look=len(first.trials)))
    wanted = Verdict.REGRESSION if work > SAME else Verdict.INCONCLUSIVE
    assert of(report).verdict is of(report, "engine_cpu_time").verdict is wanted


def test_what_changed_is_the_reason_to_measure_again():
    slower, faster = find_reason(timed(SLOWER)), find_reason(timed(FASTER))
    assert re.fullmatch(r"tpot median \+7\.\d % \(worse\)", slower)
    assert re.fullmatch(r"tpot median -7\.\d % \(better\)", faster)
    assert find_reason(timed(SAME)) == ""
    assert find_reason(timed(1.01)) == "", "not relevant, however sure"


def test_the_first_look_is_more_lenient_than_a_report():
    """What has p between both levels is measured again, and so can still be told."""
    seen = 0
    for seed in range(60):
        draws = np.random.default_rng(seed).normal(0.03, 0.06, BLOCKS)
        run = a_comparison({"tpot": (1.0,) * BLOCKS}, {"tpot": np.exp(draws).tolist()})
        found = of(build_report(run))
        relevant = (found.effect or 0) > found.relevance
        if relevant and FALSE_DISCOVERY_RATE <= (found.p_adjusted or 0) < FIRST_LEVEL:
            seen += 1
            assert find_reason(run)
    assert seen


def test_what_is_red_anyhow_is_not_measured_again():
    slower = timed(SLOWER)
    contract = (
        {"contract.padded_rows_prefilling": (0.0,)},
        {"contract.padded_rows_prefilling": (9.0,)},
    )
    broken = a_comparison(
        *(
            {"tpot": [t.samples[0].values[0] for t in slower.measured(side)], **contract[side]}
            for side in (0, 1)
        )
    )
    assert find_reason(broken) == ""
    assert find_reason(with_failures(slower, 1, Phase.PERFORMANCE, 1)) == ""
    lost = a_comparison(
        {"tpot": [1.0] * 9, "accuracy.recall": "1" * 60},
        {"tpot": [1.1] * 9, "accuracy.recall": "0" * 60},
    )
    assert find_reason(lost) == ""


def test_a_policy_by_which_the_gate_would_be_red_has_it_measured_again():
    policy = Policy((Rule("tpot", margin=0.005),))
    assert find_reason(timed(1.02)) == ""
    assert find_reason(timed(1.02), [policy])


def test_runs_without_a_second_look_are_judged_as_ever():
    run = timed(SLOWER)
    assert of(build_report(run)).verdict is Verdict.REGRESSION
    assert "Measured twice" not in of(build_report(run)).assumption
    state = MachineState(0.01, 0.011)
    assert (
        split_looks(replace(run, trials=tuple(replace(t, surroundings=state) for t in run.trials)))
        is None
    )
