"""When it has to be said that nothing can be told."""

import pytest

from hybridwatch.analysis.cause import Area, CausePart, causes_in, find_area, find_causes
from hybridwatch.analysis.change_review import FAR, ChangeReview, Conclusion, find_blindness
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from tests.broken_engines import restless
from tests.builders import a_run, noisy
from tests.situations import SITUATIONS, equivalent, failed, improvement, regression


def part(metric, verdict=Verdict.REGRESSION, effect=0.1, action=Action.BLOCK, statistic="median"):
    return CausePart(metric, statistic, verdict, effect, action)


def test_a_dead_engine_is_one_cause_whatever_it_left_unmeasured():
    lost = [part(name, Verdict.FAILED, None) for name in ("ttft", "tpot", "accuracy.recall")]
    (cause,) = find_causes(lost)
    assert cause.area is Area.ENGINE
    assert len(cause.parts) == 3


def test_a_slow_down_is_one_cause_led_by_what_users_feel():
    slower = [
        part("e2el", effect=0.5),
        part("ttft", effect=0.06),
        part("tpot", effect=0.2),
        part("output_throughput", effect=-0.1, statistic="value"),
    ]
    (cause,) = find_causes(slower)
    assert cause.area is Area.SPEED
    assert [one.metric for one in cause.parts] == ["tpot", "output_throughput", "ttft", "e2el"]


def test_a_halved_throughput_is_larger_than_a_latency_that_grew_by_half():
    (cause,) = find_causes([part("ttft", effect=0.5), part("output_throughput", effect=-0.5)])
    assert cause.lead.metric == "output_throughput"


def test_what_the_gate_stops_leads_what_it_only_warns_of():
    (cause,) = find_causes(
        [part("ttft", effect=0.9, action=Action.WARN), part("e2el", effect=0.05)]
    )
    assert cause.lead.metric == "e2el"
    assert cause.action is Action.BLOCK


def test_a_tail_leads_only_alone():
    (cause,) = find_causes([part("ttft", effect=0.9, statistic="p99"), part("tpot", effect=0.05)])
    assert cause.lead.metric == "tpot"


def test_the_drafts_at_one_position_lead_only_alone():
    parts = [
        part("acceptance_rate.position_6", effect=-0.5),
        part("acceptance_length", effect=-0.1),
    ]
    (cause,) = find_causes(parts)
    assert cause.lead.metric == "acceptance_length"


def test_what_settles_nothing_is_no_cause():
    calm = Verdict.EQUIVALENT, Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE
    assert find_causes(part("ttft", verdict) for verdict in calm) == ()


def test_causes_come_most_severe_first_and_improvements_last():
    found = find_causes(
        [
            part("ttft", Verdict.IMPROVEMENT, -0.2),
            part("host_syncs_per_step"),
            part("tpot"),
            part("itl", Verdict.MISSING, None),
            part("contract.wrong_tokens", effect=26.0),
            part("accuracy.recall", effect=-0.1),
            part("e2el", Verdict.FAILED, None),
        ]
    )
    assert [(cause.area, cause.is_better) for cause in found] == [
        (Area.ENGINE, False),
        (Area.ANSWERS, False),
        (Area.CONTRACT, False),
        (Area.MEASUREMENT, False),
        (Area.SPEED, False),
        (Area.HOST, False),
        (Area.SPEED, True),
    ]


def test_metrics_of_other_tools_and_unknown_ones_are_no_slow_down():
    regression = Verdict.REGRESSION
    assert find_area("asv_memory.peak", regression) is Area.OTHER
    assert find_area("no_such_metric", regression) is Area.OTHER
    assert len(find_causes([part("no_such_metric", effect=None), part("asv_number.x")])) == 1


def test_a_report_of_five_regressions_has_three_causes():
    areas = [(cause.area, len(cause.parts)) for cause in causes_in(regression())]
    assert areas == [(Area.ANSWERS, 1), (Area.CONTRACT, 1), (Area.SPEED, 3)]


def test_a_part_knows_its_comparison():
    cause = causes_in(regression())[-1]
    assert cause.lead.comparison is not None
    assert cause.lead.comparison.metric.id == cause.lead.metric == "output_throughput"


def test_a_failed_report_names_the_engine_and_nothing_is_reported_twice():
    causes = causes_in(failed())
    assert causes[0].area is Area.ENGINE
    metrics = [(one.metric, one.statistic) for cause in causes for one in cause.parts]
    assert len(metrics) == len(set(metrics))


def test_an_improvement_is_a_cause_for_the_better_and_no_action():
    causes = causes_in(improvement())
    assert {cause.is_better for cause in causes} == {True}
    assert {cause.action for cause in causes} == {Action.WATCH}


def test_what_the_policy_watches_is_no_cause():
    watched = Policy((Rule("*", action=Action.WATCH),))
    assert causes_in(regression(), watched) == ()
    assert causes_in(improvement(), watched) == ()
    assert causes_in(equivalent()) == ()


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
