"""The seven verdicts, each reached from a run, and what must never happen."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridwatch.analysis.report import broken_expectations, build_report, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Design, Report, Verdict
from hybridwatch.errors import ComparisonError
from hybridwatch.records.identity import FixState, Harness
from hybridwatch.records.run import Phase, Run, Sample
from hybridwatch.scenarios.scenario import Expect
from tests.builders import TESTBED, Trials, a_build, a_run, answers, noisy, with_failures

RECALL = "accuracy.recall"
STATES = "contract.states_off"
PADDED = "contract.padded_rows_prefilling"


def the(report: Report, metric: str, statistic: str | None = None) -> Comparison:
    """The one comparison of a metric."""
    found = [
        c for c in report.comparisons if c.metric.id == metric and statistic in {None, c.statistic}
    ]
    assert len(found) == 1, [c.metric.id for c in report.comparisons]
    return found[0]


def verdict_of(metric: str, baseline, contender) -> Verdict:
    return the(build_report(a_run({metric: baseline}, {metric: contender})), metric).verdict


# Times, rates and counts


def test_planted_slowdown_of_a_fifth_is_found_at_seven_trials() -> None:
    report = build_report(a_run({"ttft": noisy(0.04, seed=1)}, {"ttft": noisy(0.048, seed=2)}))
    for statistic in ("median", "p99"):
        found = the(report, "ttft", statistic)
        assert found.verdict is Verdict.REGRESSION
        assert found.effect == pytest.approx(0.2, abs=0.05)
        assert found.interval is not None
        assert found.interval.low < 0.2 < found.interval.high
        assert (found.p_adjusted or 1.0) < 0.05
        assert found.trials_needed is None


def test_planted_slowdown_is_found_among_many_quiet_metrics() -> None:
    quiet = {name: noisy(1.0, seed=3) for name in ("itl", "e2el", "tpot", "request_throughput")}
    other = {name: noisy(1.0, seed=4) for name in quiet}
    run = a_run(
        {**quiet, "output_throughput": noisy(800.0, seed=5)},
        {**other, "output_throughput": noisy(640.0, seed=6)},
    )
    report = build_report(run)
    assert [c.metric.id for c in report.bad_news] == ["output_throughput"]
    assert report.tests == 7


@pytest.mark.parametrize(
    ("metric", "factor", "verdict"),
    [
        ("tpot", 1.2, Verdict.REGRESSION),
        ("tpot", 0.8, Verdict.IMPROVEMENT),
        ("output_throughput", 1.2, Verdict.IMPROVEMENT),
        ("output_throughput", 0.8, Verdict.REGRESSION),
        ("host_syncs_per_step", 1.2, Verdict.REGRESSION),
        ("host_syncs_per_step", 0.8, Verdict.IMPROVEMENT),
    ],
)
def test_direction_comes_from_the_metric(metric, factor, verdict) -> None:
    assert verdict_of(metric, noisy(10.0, seed=1), noisy(10.0 * factor, seed=2)) is verdict


def test_same_within_the_margin_is_equivalent() -> None:
    run = a_run({"tpot": noisy(1.0, spread=0.01, seed=1)}, {"tpot": noisy(1.0, 7, 0.01, 2)})
    found = the(build_report(run), "tpot")
    assert found.verdict is Verdict.EQUIVALENT
    assert (found.equivalence_p or 1.0) < 0.05


def test_significant_change_within_the_margin_is_worse_within_it() -> None:
    run = a_run({"tpot": noisy(1.0, 9, 0.002, 1)}, {"tpot": noisy(1.01, 9, 0.002, 2)})
    found = the(build_report(run), "tpot")
    assert (found.p_adjusted or 1.0) < 0.05
    assert found.verdict is Verdict.WORSE_WITHIN


def test_significant_change_at_the_edge_of_the_margin_stays_open() -> None:
    run = a_run({"tpot": noisy(1.0, 12, 0.01, 1)}, {"tpot": noisy(1.027, 12, 0.01, 4)})
    found = the(build_report(run), "tpot")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("beyond the margin" in doubt for doubt in found.doubts)
    assert found.trials_needed == 24


def test_noise_is_inconclusive_and_says_what_it_could_have_seen() -> None:
    run = a_run({"tpot": noisy(1.0, spread=0.1, seed=1)}, {"tpot": noisy(1.0, 7, 0.1, 2)})
    found = the(build_report(run), "tpot")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert 0.1 < (found.minimum_detectable_effect or 0) < 0.3
    assert (found.trials_needed or 0) > 30


def test_a_difference_that_is_one_of_many_looks_stays_open_and_says_so() -> None:
    lucky = {"tpot": noisy(1.0, spread=0.1, seed=20)}
    unlucky = {"tpot": noisy(1.12, spread=0.1, seed=120)}
    quiet = {name: noisy(1.0, spread=0.1, seed=3) for name in ("ttft", "itl", "e2el")}
    other = {name: noisy(1.0, spread=0.1, seed=at) for at, name in enumerate(quiet, 4)}
    found = the(build_report(a_run({**lucky, **quiet}, {**unlucky, **other})), "tpot")
    assert (found.p_value or 1.0) < 0.05
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("as one of 7 tests" in doubt for doubt in found.doubts)


def test_three_trials_settle_nothing_and_weaken_no_other_test() -> None:
    run = a_run(
        {"ttft": noisy(0.04, seed=1), "metadata_build_time": (1.0, 1.1, 1.2)},
        {"ttft": noisy(0.048, seed=2), "metadata_build_time": (9.0, 9.1, 9.2)},
    )
    report = build_report(run)
    found = the(report, "metadata_build_time")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.p_value is None
    assert any("Fewer than 4 trials a side" in doubt for doubt in found.doubts)
    assert report.tests == 2


def test_four_to_nine_trials_raise_a_doubt() -> None:
    found = the(build_report(a_run({"tpot": noisy(1.0, 5)}, {"tpot": noisy(2.0, 5)})), "tpot")
    assert found.verdict is Verdict.REGRESSION
    assert any("Fewer than 10 trials a side" in doubt for doubt in found.doubts)


def test_a_count_is_the_mean_over_the_steps_of_a_trial() -> None:
    run = a_run({"host_syncs_per_step": [(1.0, 2.0, 6.0)] * 4}, {"host_syncs_per_step": [3.0] * 4})
    found = the(build_report(run), "host_syncs_per_step")
    assert found.baseline is not None
    assert found.baseline.values == (3.0,) * 4
    assert found.verdict is Verdict.EQUIVALENT


def test_a_tail_that_grows_is_seen_though_the_median_stays() -> None:
    base = [tuple(noisy(1.0, 200, 0.02, seed)) for seed in range(7)]
    slow = [(*tuple(noisy(1.0, 194, 0.02, seed + 50)), *[1.5] * 6) for seed in range(7)]
    report = build_report(a_run({"itl": base}, {"itl": slow}))
    assert the(report, "itl", "median").verdict is Verdict.WORSE_WITHIN
    assert the(report, "itl", "p99").verdict is Verdict.REGRESSION


def test_values_that_are_no_numbers_are_left_out_and_told() -> None:
    run = a_run({"tpot": (*noisy(1.0), math.nan)}, {"tpot": noisy(1.0)})
    found = the(build_report(run), "tpot")
    assert found.baseline is not None
    assert found.baseline.n == 7
    assert any("no finite numbers" in doubt for doubt in found.doubts)


# Contracts


@pytest.mark.parametrize(
    ("baseline", "contender", "verdict", "effect"),
    [
        (0.0, 3.0, Verdict.REGRESSION, 3.0),
        (3.0, 0.0, Verdict.IMPROVEMENT, -3.0),
        (3.0, 4.0, Verdict.REGRESSION, 1.0),
        (0.0, 0.0, Verdict.EQUIVALENT, 0.0),
        (5.0, 5.0, Verdict.BROKEN, 0.0),
        (9.0, 2.0, Verdict.BROKEN, -7.0),
    ],
)
def test_one_trial_decides_a_contract(baseline, contender, verdict, effect) -> None:
    found = the(build_report(a_run({PADDED: (baseline,)}, {PADDED: (contender,)})), PADDED)
    assert (found.verdict, found.effect, found.test) == (verdict, effect, "exact")
    assert found.p_value is None
    broken = any("Broken on both sides, so not new" in doubt for doubt in found.doubts)
    assert broken is (verdict is Verdict.BROKEN)


def test_a_contract_is_the_sum_of_a_trial_and_the_worst_of_a_side() -> None:
    run = a_run({PADDED: (0.0, 0.0)}, {PADDED: ((0.0, 0.0), (1.0, 2.0))})
    found = the(build_report(run), PADDED)
    assert found.contender is not None
    assert (found.contender.center, found.contender.values) == (3.0, (0.0, 3.0))
    assert found.verdict is Verdict.REGRESSION
    assert any("disagree (0, 3)" in doubt for doubt in found.doubts)


def test_two_broken_sides_whose_counts_vary_are_not_ranked() -> None:
    """Known-bad against known-bad: how often depends on the steps, and must not look like news."""
    run = a_run({PADDED: (564.0, 566.0, 569.0)}, {PADDED: (565.0, 570.0, 571.0)})
    found = the(build_report(run), PADDED)
    assert found.verdict is Verdict.BROKEN


# Accuracy


def test_planted_accuracy_drop_is_found_and_its_flips_are_listed() -> None:
    run = a_run({RECALL: "1" * 190 + "0" * 10}, {RECALL: "1" * 175 + "0" * 24 + "1"})
    found = the(build_report(run), RECALL)
    assert found.verdict is Verdict.REGRESSION
    assert found.effect == pytest.approx(-14 / 200)
    assert found.churn == pytest.approx(16 / 200)
    assert (found.test, found.pairs) == ("McNemar", 200)
    assert [flip.baseline.doc_id for flip in found.flips] == [*range(175, 190), 199]
    assert found.interval is not None
    assert found.interval.low < -0.07 < found.interval.high < 0


def test_a_small_loss_counts_from_one_point_on() -> None:
    right = "1" * 1000
    assert verdict_of(RECALL, right, "0" * 15 + "1" * 985) is Verdict.REGRESSION
    small = the(build_report(a_run({RECALL: right}, {RECALL: "0" * 8 + "1" * 992})), RECALL)
    assert (small.p_value or 1.0) < 0.05
    assert small.verdict is Verdict.WORSE_WITHIN
    assert (small.relevance, small.metric.margin) == (0.01, 0.02)


def test_accuracy_gained_is_an_improvement() -> None:
    assert verdict_of(RECALL, "0" * 30 + "1" * 170, "1" * 200) is Verdict.IMPROVEMENT


def test_enough_equal_answers_are_equivalent_and_few_are_not() -> None:
    assert verdict_of(RECALL, "1" * 150, "1" * 150) is Verdict.EQUIVALENT
    few = the(build_report(a_run({RECALL: "1" * 50}, {RECALL: "1" * 50})), RECALL)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert 133 <= (few.trials_needed or 0) <= 250


def test_answers_are_paired_by_what_was_asked_not_by_place() -> None:
    run = a_run({RECALL: "10" * 80}, {RECALL: "10" * 80})
    shuffled = list(answers("recall", "10" * 80))[::-1]
    trials = tuple(
        replace(t, answers=tuple(replace(a, doc_id=i) for i, a in enumerate(shuffled)))
        if t.side == 1
        else t
        for t in run.trials
    )
    found = the(build_report(replace(run, trials=trials)), RECALL)
    assert found.flips == ()
    assert found.effect == 0.0


def test_a_question_asked_twice_in_a_task_is_paired_twice() -> None:
    run = a_run({RECALL: "11"}, {RECALL: "10"})
    trials = tuple(
        replace(
            t,
            answers=tuple(
                replace(a, doc_hash="d", prompt_hash="p", target_hash="t") for a in t.answers
            ),
        )
        for t in run.trials
    )
    found = the(build_report(replace(run, trials=trials)), RECALL)
    assert found.baseline is not None
    assert found.baseline.n == 2
    assert len(found.flips) == 1


def test_over_several_trials_the_majority_of_answers_counts() -> None:
    once = a_run({RECALL: "11"}, {RECALL: "11"})
    base, cont = once.trials
    again = [
        replace(cont, index=2 + n, answers=answers("recall", t)) for n, t in enumerate(("01", "01"))
    ]
    found = the(build_report(replace(once, trials=(base, cont, *again))), RECALL)
    assert found.contender is not None
    assert found.contender.values == (0.0, 1.0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: answers("recall", "1" * 150, version="2.0"), "Task version differs"),
        (lambda some: some[:-1], "The questions differ (1 on the baseline only"),
        (
            lambda some: tuple(replace(a, prompt_hash="x" + a.prompt_hash) for a in some),
            "questions",
        ),
    ],
)
def test_different_questions_are_not_comparable(change, told) -> None:
    run = a_run({RECALL: "1" * 150}, {RECALL: "1" * 150})
    trials = tuple(replace(t, answers=change(t.answers)) if t.side else t for t in run.trials)
    found = the(build_report(replace(run, trials=trials)), RECALL)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert any(told in doubt for doubt in found.doubts)
    assert found.p_value is None


def test_accuracy_without_answers_is_inconclusive_never_unpaired() -> None:
    run = a_run({RECALL: "1" * 200}, {RECALL: "0" * 200})
    bare = replace(run, trials=tuple(replace(trial, answers=()) for trial in run.trials))
    found = the(build_report(bare), RECALL)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.effect == -1.0
    assert any("answers" in doubt for doubt in found.doubts)


# One control for all


def test_a_lower_level_asks_for_more() -> None:
    run = a_run({"tpot": noisy(1.0, 12)}, {"tpot": noisy(1.06, 12, seed=4)})
    usual, strict = build_report(run), build_report(run, level=0.0005)
    assert the(usual, "tpot").verdict is Verdict.REGRESSION
    assert the(strict, "tpot").verdict is Verdict.INCONCLUSIVE
    before, after = the(usual, "tpot"), the(strict, "tpot")
    assert after.p_value == before.p_value
    assert after.p_adjusted == pytest.approx(100 * (before.p_adjusted or 1))
    same = a_run({"tpot": noisy(1.0, 12, 0.01)}, {"tpot": noisy(1.0, 12, 0.01, seed=2)})
    assert the(build_report(same), "tpot").verdict is Verdict.EQUIVALENT
    assert the(build_report(same, level=0.0002), "tpot").verdict is Verdict.INCONCLUSIVE


def test_everything_that_was_tested_says_how() -> None:
    run = a_run(
        {"tpot": noisy(1.0, 12), PADDED: (0.0,), RECALL: "10"},
        {"tpot": noisy(1.0, 12, seed=2), PADDED: (0.0,), RECALL: "11"},
    )
    for found in build_report(run).comparisons:
        assert found.assumption.endswith(".")
        assert found.design is not Design.NONE
        assert (found.p_holm is None) is (found.p_value is None)
    lone = the(build_report(a_run({"tpot": (1.0,)}, {"tpot": (2.0,)})), "tpot")
    assert (lone.design, lone.assumption) == (Design.NONE, "")


# Missing, failed, not comparable


def test_a_metric_that_one_side_lacks_is_missing() -> None:
    both = {"tpot": noisy(1.0)}
    report = build_report(a_run({**both, "ttft": noisy(1.0)}, both))
    assert {c.verdict for c in report.comparisons if c.metric.id == "ttft"} == {Verdict.MISSING}
    assert report.bad_news
    back = build_report(a_run(both, {**both, "e2el": noisy(1.0)}))
    assert the(back, "e2el", "p99").verdict is Verdict.MISSING


def test_a_contender_that_failed_entirely_fails_every_metric_of_the_baseline() -> None:
    base: Mapping[str, Trials] = {
        PADDED: (0.0,),
        RECALL: "11",
        "ttft": noisy(1.0),
        "host_syncs_per_step": (1.0,),
    }
    run = a_run(base, {})
    for phase in Phase:
        run = with_failures(run, 1, phase, 2, "engine died")
    report = build_report(run)
    assert len(report.comparisons) == 5
    assert {c.verdict for c in report.comparisons} == {Verdict.FAILED}
    first = len(run.trials) - 2 * len(Phase)
    assert report.failures[0] == f"contender, contract trial {first}: engine died"
    assert len(report.failures) == 2 * len(Phase)


def test_failures_of_another_phase_do_not_explain_an_absence() -> None:
    run = with_failures(a_run({"ttft": noisy(1.0)}, {}), 1, Phase.ACCURACY, 1)
    found = {c.metric.id: c.verdict for c in build_report(run).comparisons}
    assert found["ttft"] is Verdict.MISSING


def test_a_phase_that_failed_on_both_sides_is_not_passed_over() -> None:
    run = a_run({PADDED: (0.0,)}, {PADDED: (0.0,)})
    for side in (0, 1):
        run = with_failures(run, side, Phase.PERFORMANCE, 1)
    assert the(build_report(run), "output_throughput").verdict is Verdict.FAILED


def test_some_failed_trials_leave_a_verdict_and_a_doubt() -> None:
    run = a_run({"tpot": noisy(1.0)}, {"tpot": noisy(1.5, seed=2)})
    found = the(build_report(with_failures(run, 1, Phase.PERFORMANCE, 2)), "tpot")
    assert found.verdict is Verdict.REGRESSION
    assert any("2 of 9 performance trials of the contender failed" in d for d in found.doubts)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scenario": ("id", "smoke/other")}, "Scenario differs"),
        ({"scenario": ("version", 2)}, "Scenario version differs"),
        ({"scenario": ("digest", "e" * 64)}, "Scenario digest differs"),
        ({"testbed": ("id", "other")}, "Testbed differs"),
    ],
)
def test_other_scenario_or_testbed_is_not_comparable(changes, told) -> None:
    left = a_run({"tpot": noisy(1.0), PADDED: (0.0,)})
    ((field, (name, value)),) = changes.items()
    right = replace(left, id="22222222", **{field: replace(getattr(left, field), **{name: value})})
    report = report_between(OneSide(left, 0), OneSide(right, 0))
    assert {c.verdict for c in report.comparisons} == {Verdict.NOT_COMPARABLE}
    assert all(any(told in doubt for doubt in c.doubts) for c in report.comparisons)
    assert report.tests == 0


def test_two_runs_are_compared_with_the_doubts_that_two_runs_deserve() -> None:
    left = a_run({"tpot": noisy(1.0), PADDED: (0.0,)})
    right = replace(
        left,
        id="22222222",
        harness=Harness("0.2.0", None),
        testbed=replace(TESTBED, kernel="6.2.0"),
    )
    report = report_between(OneSide(left, 0), OneSide(right, 0))
    found = the(report, "tpot")
    assert found.verdict is Verdict.INCONCLUSIVE or found.verdict is Verdict.EQUIVALENT
    told = " ".join(found.doubts)
    assert "interleaved" in told
    assert "different harnesses" in told
    assert "kernel" in told
    assert "interleaved" not in " ".join(the(report, PADDED).doubts)
    assert report.differences == ("testbed kernel: 6.1.0 -> 6.2.0",)


def test_one_build_or_no_such_side_is_an_error() -> None:
    run = a_run({"tpot": noisy(1.0)})
    with pytest.raises(ComparisonError, match="one side alone cannot be compared"):
        build_report(run)
    with pytest.raises(ComparisonError, match="no side 1"):
        report_between(OneSide(run, 0), OneSide(run, 1))


def test_unknown_metric_is_an_error() -> None:
    run = a_run({"tpot": noisy(1.0)}, {"tpot": noisy(1.0)})
    first = replace(run.trials[0], samples=(Sample("latency", (1.0,)),))
    with pytest.raises(ComparisonError, match="'latency'"):
        build_report(replace(run, trials=(first, *run.trials[1:])))


def test_warm_ups_never_count() -> None:
    run = a_run({"tpot": noisy(1.0)}, {"tpot": noisy(1.0, seed=2)})
    warm = replace(run.trials[0], warmup=True, samples=(Sample("tpot", (99.0,)),))
    assert build_report(replace(run, trials=(warm, *run.trials))) == build_report(run)


def test_differences_name_what_differs() -> None:
    run = a_run({PADDED: (0.0,)}, {PADDED: (0.0,)})
    builds = (
        a_build(flags={"dtype": "float32", "gone": "1"}),
        a_build(
            "other",
            release="0.28.0",
            lock_digest="3" * 64,
            fixes={"padded-rows-prefilling": FixState.REVERTED},
            flags={"dtype": "bfloat16"},
        ),
    )
    assert build_report(replace(run, builds=builds)).differences == (
        "fix padded-rows-prefilling: present -> reverted",
        "flag dtype: float32 -> bfloat16",
        "flag gone: 1 -> unset",
        "release: 0.27.1 -> 0.28.0",
        "lock: 111111111111 -> 333333333333",
    )


def unsupported(run: Run, side: int, reason: str) -> Run:
    """The run, whose probe could not watch a contract of one side."""
    trials = (
        replace(trial, unsupported={"contract.states_off": reason})
        if trial.side == side and trial.phase is Phase.CONTRACT
        else trial
        for trial in run.trials
    )
    return replace(run, trials=tuple(trials))


def test_metric_that_a_probe_cannot_watch_is_missing_with_the_reason() -> None:
    run = a_run({PADDED: (0.0,), STATES: (0.0,)}, {PADDED: (0.0,)})
    report = build_report(unsupported(run, 1, "Conv: expected two states"))
    found = the(report, STATES)
    assert found.verdict is Verdict.MISSING
    (why,) = found.doubts
    assert why == (
        "The probe does not support the engine of the contender (1 of 1 trials): "
        "Conv: expected two states."
    )
    assert the(report, PADDED).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    ("found", "verdict"), [(0.0, Verdict.EQUIVALENT), (4.0, Verdict.REGRESSION)]
)
def test_a_baseline_from_before_a_contract_is_held_for_whole(found, verdict) -> None:
    """A stored baseline stays one when contracts are added; what the contender breaks counts."""
    old = OneSide(a_run({PADDED: (0.0,)}), 0)
    new = OneSide(a_run({PADDED: (0.0,), STATES: (found,)}, id="22222222"), 0)
    compared = the(report_between(old, new), STATES)
    assert (compared.verdict, compared.effect) == (verdict, found)
    assert "before this was counted" in compared.assumption
    # The other way round nobody has counted for the side that is judged.
    assert the(report_between(new, old), STATES).verdict is Verdict.MISSING


def test_a_baseline_without_contract_trials_stands_for_nothing() -> None:
    old = OneSide(a_run({"ttft": noisy(1.0, 7)}), 0)
    new = OneSide(a_run({STATES: (0.0,), "ttft": noisy(1.0, 7)}, id="22222222"), 0)
    assert the(report_between(old, new), STATES).verdict is Verdict.MISSING


def test_metric_that_neither_side_can_be_watched_for_is_not_passed_over() -> None:
    run = a_run({PADDED: (0.0,)}, {PADDED: (0.0,)})
    for side in (0, 1):
        run = unsupported(run, side, "Conv: expected two states")
    assert the(build_report(run), STATES).verdict is Verdict.MISSING


def test_expectation_of_what_a_probe_cannot_watch_is_broken_with_the_reason() -> None:
    run = unsupported(a_run({PADDED: (0.0,)}, {PADDED: (0.0,)}), 0, "Conv: expected two states")
    expect = Expect(exactly={STATES: 0.0, PADDED: 0.0})
    assert broken_expectations(run, 0, expect) == (
        "contract.states_off: expected exactly 0, found no value (Conv: expected two states)",
    )


def test_a_contract_that_no_scenario_names_is_to_be_kept_all_the_same() -> None:
    run = a_run({PADDED: (0.0,), "contract.blocks_leaked": (0.0, 4.0), "ttft": (1.0,)})
    leaked = "contract.blocks_leaked: expected exactly 0, found 4"
    assert broken_expectations(run, 0, Expect()) == (leaked,)
    assert broken_expectations(run, 0, Expect(exactly={"contract.blocks_leaked": 4.0})) == (
        "contract.blocks_leaked: expected exactly 4, found 0",
    )


def test_patched_and_restored_trees_of_one_label_are_distinguished() -> None:
    """Wheel and lock say the same of both: only the files that the engine imported differ."""
    run = a_run({PADDED: (0.0,)}, {PADDED: (0.0,)})
    restored, patched = (a_build("adopted", code_digest=c * 64) for c in "ab")
    assert build_report(replace(run, builds=(restored, patched))).differences == (
        "vLLM's Python files: aaaaaaaaaaaa -> bbbbbbbbbbbb",
    )
    assert build_report(replace(run, builds=(restored, restored))).differences == ()
    assert build_report(replace(run, builds=(a_build("adopted"), patched))).differences == (
        "vLLM's Python files: not recorded -> bbbbbbbbbbbb",
    )


def test_patched_files_and_commits_of_the_sides_are_differences() -> None:
    run = a_run({PADDED: (0.0,)}, {PADDED: (0.0,)})
    named = tuple(f"{letter}.py" for letter in "abcde")
    patched = a_build(changed_files=named, revision="1" * 40, diff_digest="e" * 64)
    released = a_build(changed_files=())
    assert build_report(replace(run, builds=(released, patched))).differences == (
        "patched Python files: none -> a.py, b.py, c.py, 2 more",
        "revision: unset -> 111111111111, changes eeeeeeee",
    )


RUNNER = "v1/worker/gpu_model_runner.py"


@pytest.mark.parametrize(
    ("state", "changes", "said"),
    [
        (FixState.LACKING, {"changed_files": (RUNNER, "a.py")}, f"unknown, changed in {RUNNER}"),
        (FixState.LACKING, {"changed_files": ("a.py",)}, "unknown, changed in a.py"),
        # Nobody edited anything there, somebody switched it, or the release is another.
        (FixState.LACKING, {"changed_files": ()}, "lacking"),
        (FixState.REVERTED, {"changed_files": (RUNNER,)}, "reverted"),
        (FixState.LACKING, {"changed_files": (RUNNER,), "release": "0.28.0"}, "lacking"),
    ],
)
def test_a_probe_that_does_not_know_the_lines_accuses_no_build(state, changes, said) -> None:
    run = a_run({PADDED: (0.0,)}, {PADDED: (0.0,)})
    fix = "padded-rows-prefilling"
    builds = a_build(fixes={fix: FixState.PRESENT}), a_build("mine", fixes={fix: state}, **changes)
    for sides, line in (
        (builds, f"fix {fix}: present -> {said}"),
        (builds[::-1], f"fix {fix}: {said} -> present"),
    ):
        assert build_report(replace(run, builds=sides)).differences[0] == line


def test_order_of_comparisons() -> None:
    side: Mapping[str, Trials] = {
        "host_syncs_per_step": (1.0,),
        "ttft": (1.0,),
        "output_throughput": (1.0,),
        RECALL: "1",
        PADDED: (0.0,),
    }
    found = [c.metric.id for c in build_report(a_run(side, side)).comparisons]
    assert found == [PADDED, RECALL, "output_throughput", "ttft", "ttft", "host_syncs_per_step"]


# What holds for every run


@pytest.mark.parametrize("trials", [7, 12])
def test_each_family_of_an_a_a_report_is_red_at_most_one_time_in_twenty(trials) -> None:
    rng = np.random.default_rng(20260301)
    red = {"accuracy": 0, "speed": 0}
    for _ in range(100):
        names = ("ttft", "itl", "tpot", "output_throughput", "request_throughput")
        # Spread wide enough that noise alone often passes the margin: the test must hold alone.
        sides = [
            {name: tuple(np.exp(rng.normal(0, 0.15, trials))) for name in names}
            | {"host_syncs_per_step": tuple(rng.integers(3, 6, trials).astype(float))}
            | {RECALL: "".join(rng.choice(["0", "1"], 100, p=[0.2, 0.8]))}
            for _ in range(2)
        ]
        for family in {found.family for found in build_report(a_run(*sides)).bad_news}:
            red[family] += 1
    assert max(red.values()) <= 0.05 * 100, red


positive = st.floats(1e-6, 1e6)
side_values = st.fixed_dictionaries(
    {
        "ttft": st.lists(positive, min_size=1, max_size=8),
        "host_syncs_per_step": st.lists(st.integers(0, 3).map(float), min_size=1, max_size=8),
        PADDED: st.lists(st.integers(0, 2).map(float), min_size=1, max_size=3),
        RECALL: st.text("01", min_size=1, max_size=30),
    }
)


@settings(max_examples=40)
@given(side_values)
def test_a_side_compared_with_itself_is_red_only_where_it_breaks_a_contract(side) -> None:
    report = build_report(a_run(side, side))
    allowed = {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}
    allowed |= {Verdict.BROKEN} if any(side[PADDED]) else set()
    assert {c.verdict for c in report.comparisons} <= allowed


@settings(max_examples=40)
@given(side_values, side_values, st.randoms(use_true_random=False))
def test_order_of_trials_is_irrelevant(left, right, random) -> None:
    right = {**right, RECALL: (right[RECALL] * 30)[: len(left[RECALL])]}
    run = a_run(left, right)
    trials = list(run.trials)
    random.shuffle(trials)
    assert _essence(run) == _essence(replace(run, trials=tuple(trials)))


def _essence(run: Run) -> list[object]:
    """Everything of a report but the order of the values behind it."""
    return [
        replace(
            c,
            baseline=c.baseline and replace(c.baseline, values=()),
            contender=c.contender and replace(c.contender, values=()),
        )
        for c in build_report(run).comparisons
    ]
