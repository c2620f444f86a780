"""The policy: which rule decides, what it allows, what is never green."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.change_review import Absent, ChangeReview, Conclusion
from hybridwatch.analysis.gate import consequence, gate, gate_all
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule, covers
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.metrics import find_metric
from tests.builders import a_run, noisy
from tests.situations import SITUATIONS

PADDED = "contract.padded_rows_prefilling"
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
    assert (wide.verdict, wide.relevance, wide.metric.margin) == (Verdict.EQUIVALENT, 0.1, 0.1)
    elsewhere = judged(SLOWER, by(Action.BLOCK, scenarios="curated", margin=0.1))
    assert elsewhere.comparisons[0].verdict is Verdict.REGRESSION


def test_a_margin_of_accuracy_is_its_bound_of_relevance_too() -> None:
    lost = a_run({"accuracy.recall": "1" * 400}, {"accuracy.recall": "1" * 388 + "0" * 12})
    (own,) = judged(lost).comparisons
    (wide,) = judged(lost, by(Action.BLOCK, "accuracy.*", margin=0.05)).comparisons
    assert (own.verdict, own.relevance) == (Verdict.REGRESSION, 0.01)
    assert (wide.verdict, wide.relevance) == (Verdict.EQUIVALENT, 0.05)


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
