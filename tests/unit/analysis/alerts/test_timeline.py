"""One alert for one cause: what a run says of an area, and how alerts open and close by it."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.alert_decisions import DecisionEntry, Decisions
from hybridwatch.analysis.alert_timeline import CONTROL, JudgedMetric, TransitionKind
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import STRICT, Action, Policy, Rule
from hybridwatch.analysis.verdict import Verdict
from tests.unit.analysis.alerts.builders import (
    QUESTION,
    accept,
    acknowledge,
    build_alerts,
    duplicate,
    invalid,
    night,
    nights,
    noon,
)

BAD, GOOD, UNCLEAR = Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE
FAILED, MISSING = Verdict.FAILED, Verdict.MISSING
SPEED = ("output_throughput", "ttft", "tpot", "itl", "e2el", "request_throughput")
EVERYTHING = (*SPEED, "accuracy.recall", "contract.equal_output", "host_syncs_per_step")


def run(number: int, effect: float = 0.1, **verdicts: Verdict) -> list[JudgedMetric]:
    """What one night says of some metrics; ``_`` stands for the dot in their ids."""
    return [
        JudgedMetric(
            replace(QUESTION, metric=metric.replace("__", ".")),
            verdict,
            effect if verdict is BAD else None,
            f"{number:08x}",
            night(number),
        )
        for metric, verdict in verdicts.items()
    ]


def every(number: int, verdict: Verdict, metrics=EVERYTHING) -> list[JudgedMetric]:
    named = {metric.replace(".", "__"): verdict for metric in metrics}
    return run(number, 0.1, **named)


def one_of(judged, decisions: Decisions | None = None, day: int = 9, policy: Policy = STRICT):
    (alert,) = build_alerts(judged, {}, noon(day), policy)
    if decisions is None:
        return alert
    (alert,) = build_alerts(judged, {alert.subject.key: decisions}, noon(day), policy)
    return alert


def answer(judged, act, day: int) -> Decisions:
    seen = one_of(judged, day=day).seen
    return Decisions((DecisionEntry(1, noon(day), "Ann", act, seen),))


def test_a_dead_engine_is_one_alert() -> None:
    alert = one_of(every(0, FAILED))
    assert alert.subject.area is Area.ENGINE
    assert len(alert.cause.parts) == len(EVERYTHING)


def test_a_slow_down_is_one_alert_led_by_what_users_feel() -> None:
    alert = one_of(every(0, BAD, SPEED))
    assert alert.subject.area is Area.SPEED
    assert alert.cause.lead.metric in {"ttft", "tpot", "output_throughput"}
    assert len(alert.cause.parts) == len(SPEED)


@pytest.mark.parametrize(
    ("judged", "is_confirmed"),
    [
        (run(0, ttft=BAD), False),
        ([*run(0, ttft=BAD), *run(1, ttft=BAD)], True),
        ([*run(0, ttft=BAD), *run(1, ttft=UNCLEAR)], False),
        ([*run(0, ttft=BAD), *run(1, ttft=GOOD), *run(2, ttft=BAD)], False),
        (run(0, contract__equal_output=BAD), True),
        (run(0, ttft=FAILED), True),
    ],
)
def test_an_alert_is_confirmed_when_it_cannot_end_as_not_repeated(judged, is_confirmed) -> None:
    assert one_of(judged).is_confirmed is is_confirmed


def test_different_areas_are_different_alerts_the_most_severe_first() -> None:
    night_one = run(0, ttft=BAD, accuracy__recall=BAD, contract__equal_output=BAD, itl=FAILED)
    areas = [alert.subject.area for alert in build_alerts(night_one, {}, noon(0))]
    assert areas == [Area.ENGINE, Area.ANSWERS, Area.CONTRACT, Area.SPEED]


def test_an_engine_that_lived_again_resolves_its_alert_whatever_it_measured() -> None:
    judged = [*every(0, FAILED, SPEED), *every(1, UNCLEAR, SPEED)]
    assert one_of(judged).status is Status.RESOLVED


def test_an_engine_that_was_not_asked_again_is_not_shown_to_live() -> None:
    judged = [*every(0, FAILED, ("ttft", "accuracy.recall")), *run(1, ttft=GOOD)]
    assert one_of(judged).status is Status.OPEN


def test_a_missing_metric_is_over_when_it_was_measured() -> None:
    assert one_of([*run(0, ttft=MISSING), *run(1, ttft=MISSING)]).status is Status.OPEN
    assert one_of([*run(0, ttft=MISSING), *run(1, ttft=UNCLEAR)]).status is Status.RESOLVED


def test_a_slow_down_is_over_once_every_metric_of_it_was_shown_good() -> None:
    both = run(0, ttft=BAD, tpot=BAD)
    half = [*both, *run(1, ttft=GOOD, tpot=UNCLEAR)]
    assert one_of(half).status is Status.OPEN
    assert [part.metric for part in one_of(half).cause.parts] == ["tpot"]
    assert one_of([*half, *run(2, ttft=UNCLEAR, tpot=GOOD)]).is_over


def test_a_dead_engine_says_nothing_of_how_slow_it_was() -> None:
    slow, dead = run(0, ttft=BAD), run(1, ttft=FAILED)
    areas = {a.subject.area: a.status for a in build_alerts([*slow, *dead], {}, noon(1))}
    assert areas == {Area.ENGINE: Status.OPEN, Area.SPEED: Status.OPEN}


def test_what_was_bad_last_is_named_when_it_is_over() -> None:
    alert = one_of([*run(0, ttft=BAD, tpot=BAD), *run(1, ttft=GOOD, tpot=GOOD)])
    assert {part.metric for part in alert.cause.parts} == {"ttft", "tpot"}
    assert [transition.change for transition in alert.transitions] == [
        TransitionKind.OPENED,
        TransitionKind.NOT_REPEATED,
    ]


def test_another_metric_that_blocks_opens_what_was_acknowledged() -> None:
    first = run(0, ttft=BAD)
    known = answer(first, acknowledge("known"), 0)
    joined = [*first, *run(1, ttft=BAD, tpot=BAD)]
    assert one_of(joined, known).status is Status.OPEN
    warns = Policy((Rule("tpot", action=Action.WARN),))
    assert one_of(joined, known, policy=warns).status is Status.ACKNOWLEDGED


def test_a_metric_next_to_the_lead_may_grow_under_an_acknowledgement() -> None:
    first = [*run(0, effect=0.5, ttft=BAD), *run(0, effect=0.1, tpot=BAD)]
    known = answer(first, acknowledge("known"), 0)
    grown = [*run(1, effect=0.5, ttft=BAD), *run(1, effect=0.3, tpot=BAD)]
    assert one_of([*first, *grown], known).status is Status.ACKNOWLEDGED
    worse = run(1, effect=1.1, ttft=BAD)
    assert one_of([*first, *worse], known).status is Status.OPEN


def test_accepted_is_closed_and_stays_so_over_a_recovery_but_not_when_it_grows() -> None:
    first = run(0, ttft=BAD)
    known = answer(first, accept("the new kernel trades this for memory"), 0)
    assert one_of(first, known).status is Status.CLOSED
    back = [*first, *run(1, ttft=GOOD), *run(2, ttft=BAD)]
    assert one_of(back, known).status is Status.CLOSED
    grown = [*back, *run(3, effect=0.3, ttft=BAD)]
    assert one_of(grown, known).status is Status.OPEN


def test_invalid_is_closed_until_another_run_says_the_same() -> None:
    first = run(0, ttft=BAD)
    known = answer(first, invalid("somebody compiled beside it"), 0)
    assert one_of(first, known).status is Status.CLOSED
    assert one_of([*first, *run(1, ttft=UNCLEAR)], known).status is Status.CLOSED
    assert one_of([*first, *run(1, ttft=BAD)], known).status is Status.OPEN


def test_a_duplicate_is_closed_while_the_trouble_stays() -> None:
    first = run(0, ttft=BAD)
    known = answer(first, duplicate("0" * 32), 0)
    assert one_of([*first, *run(1, ttft=BAD)], known).status is Status.CLOSED
    again = [*first, *run(1, ttft=GOOD), *run(2, ttft=BAD)]
    assert one_of(again, known).status is Status.OPEN


def test_a_missed_control_is_no_engine_that_died() -> None:
    question = replace(QUESTION, metric=CONTROL, statistic="")
    missed = JudgedMetric(question, FAILED, None, "0", night(0))
    assert one_of([missed]).subject.area is Area.OTHER
    caught = JudgedMetric(question, GOOD, None, "1", night(1))
    assert one_of([missed, caught]).status is Status.RESOLVED


@pytest.mark.parametrize("metric", ["ttft", "accuracy.recall"])
@pytest.mark.parametrize(
    ("verdict", "effect", "status"),
    [
        (GOOD, 0.0, Status.NOT_REPEATED),
        (UNCLEAR, 0.04, Status.NOT_REPEATED),
        (UNCLEAR, -0.1, Status.NOT_REPEATED),
        (UNCLEAR, 0.06, Status.OPEN),
        (BAD, 0.04, Status.OPEN),
        (Verdict.NOT_COMPARABLE, None, Status.OPEN),
    ],
)
def test_what_was_bad_in_one_run_alone_is_not_repeated(metric, verdict, effect, status) -> None:
    question = replace(QUESTION, metric=metric)
    first, second = nights(BAD, verdict, about=question)
    alert = one_of([replace(first, effect=0.1), replace(second, effect=effect)])
    assert alert.status is status
    assert alert.is_over is alert.is_not_repeated


def test_what_was_bad_twice_recovers() -> None:
    question = replace(QUESTION, metric="ttft")
    alert = one_of(nights(BAD, BAD, GOOD, about=question))
    assert (alert.status, alert.transitions[-1].change) == (
        Status.RESOLVED,
        TransitionKind.RESOLVED,
    )


def test_a_contract_is_not_broken_by_chance() -> None:
    question = replace(QUESTION, metric="contract.equal_output")
    first, second = nights(BAD, UNCLEAR, about=question)
    assert one_of([first, replace(second, effect=0.0)]).status is Status.OPEN
    assert one_of(nights(BAD, GOOD, about=question)).status is Status.RESOLVED


def test_what_may_be_the_luck_of_a_start_opens_nothing_and_ends_nothing() -> None:
    question = replace(QUESTION, metric="ttft")
    first, second, third = nights(BAD, BAD, BAD, about=question)
    assert not build_alerts([replace(first, lasts=False)], {}, noon(0))
    alert = one_of([first, second, replace(third, lasts=False)])
    assert (alert.status, alert.bad.run_id) == (Status.OPEN, second.run_id)


def test_what_is_worse_within_the_margin_opens_nothing_and_ends_nothing() -> None:
    within = Verdict.WORSE_WITHIN
    assert build_alerts(run(0, ttft=within), {}, noon(0)) == ()
    alert = one_of([*run(0, ttft=BAD), *run(1, ttft=within, tpot=GOOD)])
    assert not alert.is_over
    assert alert.newest.verdict is UNCLEAR
    assert one_of([*every(0, FAILED), *run(1, ttft=within)]).newest.is_good
