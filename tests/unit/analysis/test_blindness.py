"""When it has to be said that nothing can be told."""

import pytest

from hybridwatch.analysis.change_review import FAR, ChangeReview, Conclusion, find_blindness
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule
from hybridwatch.analysis.report import build_report
from tests.broken_engines import restless
from tests.builders import a_run, noisy
from tests.situations import SITUATIONS


def findings_of(spread: float, metric: str = "tpot", policy: Policy = STRICT, n: int = 10):
    sides = ({metric: noisy(1.0, n, spread, seed)} for seed in (1, 2))
    return ChangeReview((build_report(a_run(*sides)),), (), policy)


def test_a_restless_machine_is_news_and_not_green():
    found = ChangeReview((build_report(restless()),))
    assert found.has_news
    assert found.conclusion is Conclusion.NEUTRAL
    assert found.gate.passed
    assert {spot.comparison.metric.id for spot in found.blindness.spots} == {
        "ttft",
        "tpot",
        "output_throughput",
    }


def test_a_machine_that_sees_three_margins_is_silent():
    found = findings_of(0.02)
    assert found.blindness.spots == ()
    assert not found.has_news


def test_the_bound_is_a_multiple_of_the_margin():
    found = findings_of(0.15)
    (spot,) = found.blindness.spots
    assert spot.reach > FAR * spot.comparison.metric.margin
    wide = Policy((Rule("tpot", margin=0.2),))
    assert find_blindness(found.reports, wide).spots != (), "the report's own margin counts"


@pytest.mark.parametrize("action", [Action.WARN, Action.WATCH])
def test_what_cannot_stop_a_change_makes_no_noise(action):
    found = findings_of(0.3, policy=Policy((Rule("*", action=action),)))
    assert found.blindness.of == 0
    assert not found.has_news


def test_a_tail_and_the_hosts_own_work_make_no_noise():
    assert not findings_of(0.3, "metadata_build_time").has_news
    sides = ({"ttft": noisy(1.0, 10, 0.2, seed)} for seed in (1, 2))
    found = ChangeReview((build_report(a_run(*sides)),))
    assert [spot.comparison.statistic for spot in found.blindness.spots] == ["median"]


def test_answers_are_a_matter_of_the_scenario():
    side = {"accuracy.recall": "1" * 24}
    assert not ChangeReview((build_report(a_run(side, side)),)).has_news


def test_too_few_trials_could_have_seen_nothing():
    found = findings_of(0.05, n=3)
    (spot,) = found.blindness.spots
    assert spot.reach is None


def test_trials_that_are_all_alike_hide_nothing():
    side = {"host_syncs_per_step": (3.0,)}
    assert ChangeReview((build_report(a_run(side, side)),)).blindness.spots == ()


def test_the_worst_stands_last():
    sides = (
        {"tpot": noisy(1.0, 10, 0.3, seed), "ttft": noisy(1.0, 10, 0.12, seed + 20)}
        for seed in (1, 2)
    )
    found = ChangeReview((build_report(a_run(*sides)),))
    assert [spot.comparison.metric.id for spot in found.blindness.spots] == ["ttft", "tpot"]
    assert found.blindness.trials_needed == found.blindness.spots[-1].comparison.trials_needed


@pytest.mark.parametrize("situation", ["equivalent", "nothing", "other_testbed", "unsure"])
def test_other_situations_are_not_called_blind(situation):
    assert ChangeReview((SITUATIONS[situation](),)).blindness.spots == ()
