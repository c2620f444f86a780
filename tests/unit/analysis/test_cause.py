from hybridwatch.analysis.cause import Area, CausePart, causes_in, find_area, find_causes
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.verdict import Verdict
from tests.situations import equivalent, failed, improvement, regression


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


def test_a_failed_report_names_the_engine_and_nothing_is_told_twice():
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
