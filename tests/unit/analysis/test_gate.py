"""The policy: which rule decides, what it allows, what is never green.

One side alone is right or wrong by what its scenario expects; no baseline is needed for that.
"""

from dataclasses import replace

import pytest

from hybridwatch.analysis.change_review import Absent, ChangeReview, Conclusion
from hybridwatch.analysis.gate import LUCK, consequence, gate, gate_all
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule, covers
from hybridwatch.analysis.report import EXPECTED, Terms, build_report, report_alone, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import ComparisonError
from hybridwatch.metrics import find_metric
from hybridwatch.records.identity import Expected
from hybridwatch.records.run import Phase
from hybridwatch.reports.sentence import unsure
from tests.builders import BASELINE, a_run, noisy, with_failures
from tests.situations import SITUATIONS, broken

PADDED = "contract.padded_rows_prefilling"
TASKS = ("accuracy.chain", "accuracy.lookup", "accuracy.recall")


def test_bad_news_fails_with_its_reason() -> None:
    result = gate(build_report(a_run({PADDED: (0.0,), "ttft": (1.0,)}, {PADDED: (1.0,)})))
    assert not result.passed
    assert result.reasons == (
        f"{PADDED} value: regression",
        "ttft median: missing",
        "ttft p99: missing",
    )


def test_equivalent_and_inconclusive_pass() -> None:
    side = {PADDED: (0.0,), "tpot": noisy(1.0, 2)}
    result = gate(build_report(a_run(side, side)))
    assert result.passed
    assert result.reasons == ()


def lost_a_little(tasks):
    """A run in which each task lost as many answers as p 0.03 tells."""
    right, wrong = "1" * 200, "0" * 5 + "1" * 195
    return a_run(dict.fromkeys(tasks, right), dict.fromkeys(tasks, wrong))


def test_what_only_the_report_is_sure_of_is_a_warning() -> None:
    """A gate without Holm's control would stop here: all are red in the report."""
    report = build_report(lost_a_little(TASKS))
    assert {c.verdict for c in report.comparisons} == {Verdict.REGRESSION}
    result = gate(report)
    assert result.passed
    assert result.reasons == ()
    assert [line.partition(" ")[0] for line in result.warnings] == sorted(TASKS)
    assert all("not under Holm's control" in line for line in result.warnings)


def test_what_starts_of_the_engine_differ_by_is_a_warning() -> None:
    report = build_report(lost_a_little(TASKS[:1]))
    lucky = replace(report, comparisons=tuple(replace(c, of_luck=True) for c in report.comparisons))
    result = gate(lucky)
    assert result.passed
    assert result.warnings == (f"{TASKS[0]} mean: regression, but {LUCK}",)
    assert unsure(lucky) == f"A gate only warns of {TASKS[0]}: {LUCK}."
    assert not unsure(report)


def test_the_same_change_alone_stops() -> None:
    result = gate(build_report(lost_a_little(TASKS[:1])))
    assert not result.passed
    assert result.warnings == ()


def test_a_contract_needs_no_control_to_stop() -> None:
    report = build_report(a_run({PADDED: (0.0,)}, {PADDED: (1.0,)}))
    assert report.comparisons[0].p_holm is None
    assert not gate(report).passed


def test_nothing_compared_does_not_pass() -> None:
    left = a_run({PADDED: (0.0,)})
    right = replace(left, testbed=replace(left.testbed, id="other"))
    result = gate(report_between(OneSide(left, 0), OneSide(right, 0)))
    assert not result.passed
    assert result.reasons[0].startswith("Nothing could be compared. Testbed differs")
    assert not gate(build_report(a_run({}, {}))).passed


BOTH = (
    "broken on both sides, so not new: exactly 0 is expected, the baseline has 10 and the contender"
)
WRONG = "contract.wrong_answers"


def test_what_is_broken_on_both_sides_stops_though_another_contract_holds_again() -> None:
    result = gate(broken())
    assert not result.passed
    assert result.reasons[0].startswith(f"{WRONG} value: {BOTH} 10")
    assert [line.partition(" ")[0] for line in result.reasons] == [WRONG, "accuracy.recall"]
    assert not unsure(broken()), "no test decided that it is broken, so none is doubted"


@pytest.mark.parametrize("action", list(Action))
def test_what_the_policy_knows_to_be_broken_only_warns_and_a_regression_still_stops(action) -> None:
    policy = Policy((Rule("*", action=action, known="vllm#45414"),))
    result = gate(broken(), policy)
    assert result.passed
    assert all(line.endswith(", known as vllm#45414") for line in result.warnings)
    worse = build_report(a_run({WRONG: (3.0,)}, {WRONG: (4.0,)}))
    assert gate(worse, policy).passed is (action is not Action.BLOCK)


@pytest.mark.parametrize("action", [Action.WARN, Action.WATCH])
def test_a_policy_that_does_not_block_says_of_what_is_broken_that_it_is(action) -> None:
    result = gate(broken(), Policy((Rule("*", action=action),)))
    assert result.passed
    assert len(result.warnings) == 2


def test_too_few_right_answers_stop_whether_they_are_as_many_or_more() -> None:
    for old, new in (("1" * 100 + "0" * 100, "1" * 150 + "0" * 50), ("1" * 191 + "0" * 9,) * 2):
        expected = Expected({}, {"accuracy.recall": 0.96})
        (one,) = build_report(
            a_run({"accuracy.recall": old}, {"accuracy.recall": new}, expected=expected)
        ).comparisons
        assert one.verdict is Verdict.BROKEN
    enough = Expected({}, {"accuracy.recall": 0.95})
    run = a_run({"accuracy.recall": new}, {"accuracy.recall": new}, expected=enough)
    assert gate(build_report(run)).passed


SLOWER = a_run({"tpot": noisy(1.0, 10, 0.005)}, {"tpot": noisy(1.06, 10, 0.005, 2)})


def by(action: Action, metric: str = "*", scenarios: str = "*", margin=None) -> Policy:
    return Policy((Rule(metric, scenarios, action, margin),))


def judged(run, policy=STRICT):
    return report_between(OneSide(run, 0), OneSide(run, 1), Terms(policy=policy))


@pytest.mark.parametrize(
    ("scenarios", "scenario_id", "fits"),
    [
        ("*", "smoke/x", True),
        ("smoke", "smoke/x", True),
        ("smoke/", "smoke/x", True),
        ("smoke/x", "smoke/x", True),
        ("smoke", "smoker/x", False),
        ("smoke/x", "smoke/xy", False),
        ("smoke/xy", "smoke/x", False),
    ],
)
def test_scenarios_are_named_by_id_group_or_star(scenarios, scenario_id, fits) -> None:
    assert covers(scenarios, scenario_id) is fits


def test_the_first_rule_that_fits_decides_and_none_blocks() -> None:
    policy = Policy((Rule("tt*", "smoke", Action.WATCH), Rule("ttft", "*", Action.WARN)))
    assert policy.action_for("smoke/x", find_metric("ttft")) is Action.WATCH
    assert policy.action_for("curated/x", find_metric("ttft")) is Action.WARN
    assert policy.action_for("smoke/x", find_metric("tpot")) is Action.BLOCK


@pytest.mark.parametrize(
    ("action", "passed", "warned"),
    [(Action.BLOCK, False, 0), (Action.WARN, True, 1), (Action.WATCH, True, 0)],
)
def test_a_regression_blocks_warns_or_is_watched(action, passed, warned) -> None:
    result = gate(build_report(SLOWER), by(action))
    assert (result.passed, len(result.warnings)) == (passed, warned)
    assert bool(result.reasons) is not passed


@pytest.mark.parametrize("verdict", [Verdict.MISSING, Verdict.FAILED])
@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (Action.BLOCK, Action.BLOCK),
        (Action.WARN, Action.BLOCK),
        (Action.WATCH, Action.WARN),
    ],
)
def test_missing_is_never_green(verdict, action, wanted) -> None:
    report = build_report(SLOWER)
    lost = replace(report.comparisons[0], verdict=verdict, p_holm=None)
    report = replace(report, comparisons=(lost,))
    assert consequence(lost, report, by(action)) is wanted
    assert ChangeReview((report,), (), by(action)).conclusion is not Conclusion.SUCCESS


def test_a_margin_decides_what_matters_and_what_is_the_same() -> None:
    """6 % slower: a regression by the metric's own margin of 3 %, within one of 10 %."""
    (own,) = judged(SLOWER).comparisons
    (wide,) = judged(SLOWER, by(Action.BLOCK, margin=0.1)).comparisons
    assert own.verdict is Verdict.REGRESSION
    assert (wide.verdict, wide.relevance, wide.metric.margin) == (Verdict.WORSE_WITHIN, 0.1, 0.1)
    elsewhere = judged(SLOWER, by(Action.BLOCK, scenarios="curated", margin=0.1))
    assert elsewhere.comparisons[0].verdict is Verdict.REGRESSION


def test_a_margin_of_accuracy_is_its_bound_of_relevance_too() -> None:
    lost = a_run({"accuracy.recall": "1" * 400}, {"accuracy.recall": "1" * 388 + "0" * 12})
    (own,) = judged(lost).comparisons
    (wide,) = judged(lost, by(Action.BLOCK, "accuracy.*", margin=0.05)).comparisons
    assert (own.verdict, own.relevance) == (Verdict.REGRESSION, 0.01)
    assert (wide.verdict, wide.relevance) == (Verdict.WORSE_WITHIN, 0.05)


def test_no_margin_forgives_a_broken_contract() -> None:
    broken = a_run({PADDED: (0.0,)}, {PADDED: (1.0,)})
    (found,) = judged(broken, by(Action.BLOCK, margin=0.5)).comparisons
    assert found.verdict is Verdict.REGRESSION
    assert found.metric.margin == 0


def test_many_scenarios_pass_together_or_not_at_all() -> None:
    good, bad = SITUATIONS["equivalent"](), SITUATIONS["regression"]()
    assert gate_all([good, good]).passed
    result = gate_all([good, bad])
    assert not result.passed
    assert all(line.startswith("smoke/padded-graph-rows (cpu") for line in result.reasons)
    assert not gate_all([good], absent=["smoke/dummy-run: missing"]).passed
    assert gate_all([]).reasons == ("Nothing was judged.",)


@pytest.mark.parametrize(
    ("situation", "wanted"),
    [
        ("regression", Conclusion.FAILURE),
        ("failed", Conclusion.FAILURE),
        ("other_testbed", Conclusion.FAILURE),
        ("nothing", Conclusion.FAILURE),
        ("unsure", Conclusion.NEUTRAL),
        ("worse_within", Conclusion.NEUTRAL),
        ("inconclusive", Conclusion.NEUTRAL),
        ("equivalent", Conclusion.SUCCESS),
    ],
)
def test_green_is_proven(situation, wanted) -> None:
    assert ChangeReview((SITUATIONS[situation](),)).conclusion is wanted


def test_a_scenario_that_is_not_there_is_a_failure() -> None:
    good = SITUATIONS["equivalent"]()
    found = ChangeReview((good,), (Absent("smoke/x", "missing"),))
    assert found.conclusion is Conclusion.FAILURE
    assert found.has_news


@pytest.mark.parametrize(
    ("situation", "action", "news"),
    [
        ("regression", Action.BLOCK, True),
        ("regression", Action.WARN, True),
        ("regression", Action.WATCH, False),
        ("improvement", Action.BLOCK, True),
        ("improvement", Action.WATCH, False),
        ("equivalent", Action.BLOCK, False),
        ("inconclusive", Action.BLOCK, True),
        ("inconclusive", Action.WARN, False),
        ("other_testbed", Action.WATCH, True),
        ("failed", Action.WATCH, True),
    ],
)
def test_what_is_news(situation, action, news) -> None:
    assert ChangeReview((SITUATIONS[situation](),), (), by(action)).has_news is news


def test_what_is_only_watched_makes_nothing_unsure() -> None:
    assert (
        ChangeReview((build_report(SLOWER),), (), by(Action.WATCH)).conclusion is Conclusion.SUCCESS
    )


RECALL = "accuracy.recall"
EXPECTATION = Expected({PADDED: 0.0}, {RECALL: 0.75})
HEALTHY = {PADDED: (0.0, 0.0), RECALL: "1111", "ttft": (0.1, 0.2)}


def verdicts(side, expected=EXPECTATION, **changes) -> dict[str, Verdict]:
    report = build_report(a_run(side, expected=expected, **changes))
    return {one.metric.id: one.verdict for one in report.comparisons}


def test_a_healthy_engine_is_as_expected_and_its_times_are_not_judged() -> None:
    assert verdicts(HEALTHY) == {PADDED: Verdict.EQUIVALENT, RECALL: Verdict.EQUIVALENT}


@pytest.mark.parametrize(
    ("wrong", "metric"), [({PADDED: (0.0, 27.0)}, PADDED), ({RECALL: "0001"}, RECALL)]
)
def test_what_is_not_as_expected_is_a_regression_and_stops_a_gate(wrong, metric) -> None:
    report = build_report(a_run(HEALTHY | wrong, expected=EXPECTATION))
    (bad,) = report.bad_news
    assert (bad.metric.id, bad.verdict) == (metric, Verdict.REGRESSION)
    assert not gate(report).passed
    assert report.baseline.build.label == EXPECTED
    assert report.contender.build.label == BASELINE.label


def test_a_record_without_expectations_is_held_to_its_contracts() -> None:
    assert verdicts(HEALTHY, None) == {PADDED: Verdict.EQUIVALENT}
    assert verdicts({PADDED: (1.0,)}, None) == {PADDED: Verdict.REGRESSION}


def test_a_count_that_must_be_exact_may_not_be_lower_either() -> None:
    expected = Expected({"host_syncs_per_step": 2.0}, {})
    counted = {"host_syncs_per_step": (1.0, 1.0)}
    assert verdicts(counted, expected) == {"host_syncs_per_step": Verdict.REGRESSION}


def test_what_is_expected_and_was_not_measured_is_missing_unless_its_phase_was_left_out() -> None:
    expected = Expected({PADDED: 0.0, "contract.wrong_tokens": 0.0}, {RECALL: 0.75})
    found = verdicts({PADDED: (0.0,)}, expected)
    assert found == {PADDED: Verdict.EQUIVALENT, "contract.wrong_tokens": Verdict.MISSING}


@pytest.mark.parametrize("phase", [Phase.CONTRACT, Phase.PERFORMANCE])
def test_an_engine_that_died_in_every_trial_of_a_phase_has_failed(phase) -> None:
    side = {PADDED: (0.0,)} if phase is Phase.PERFORMANCE else {"ttft": (0.1,)}
    report = build_report(with_failures(a_run(side, expected=EXPECTATION), 0, phase, 2))
    assert Verdict.FAILED in {one.verdict for one in report.comparisons}
    assert [trial.phase for trial in report.failed_trials] == [phase, phase]
    assert not gate(report).passed


def test_times_alone_cannot_be_judged() -> None:
    with pytest.raises(ComparisonError, match="expects nothing of what was measured"):
        report_alone(OneSide(a_run({"ttft": (0.1,)}), 0))


def test_an_engine_next_to_itself_is_held_to_its_contracts_too() -> None:
    broken = {PADDED: (27.0,)}
    beside_itself = a_run(broken, broken, builds=(BASELINE, BASELINE))
    (one,) = build_report(beside_itself).comparisons
    assert one.verdict is Verdict.REGRESSION
    (other,) = build_report(
        replace(beside_itself, builds=(BASELINE, replace(BASELINE, label="b")))
    ).comparisons
    assert other.verdict is Verdict.BROKEN, "never green, and not this change's doing"
