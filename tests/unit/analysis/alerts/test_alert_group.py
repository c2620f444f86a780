"""Alerts of one cause: folded where one build brought them in one night, and nowhere else."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.analysis.alert_decisions import Decision, DecisionEntry, Decisions
from hybridwatch.analysis.alert_timeline import AlertQuestion, JudgedMetric
from hybridwatch.analysis.alerts import Status, group_alerts
from hybridwatch.analysis.verdict import Verdict
from tests.unit.analysis.alerts.builders import (
    QUESTION,
    SUBJECT,
    acknowledge,
    build_alerts,
    night,
    nights,
    noon,
    reopen,
)

BAD, GOOD = Verdict.REGRESSION, Verdict.EQUIVALENT
OTHER = replace(QUESTION, testbed="h100")


def bad_in(
    question: AlertQuestion, number: int = 1, hours: float = 0.0, effect=-0.1
) -> JudgedMetric:
    """A regression in one night; its run is named after its place."""
    run = f"{question.testbed} {question.scenario} {question.baseline} {number}"
    return JudgedMetric(question, BAD, effect, run, night(number) + timedelta(hours=hours))


def folded(*judged: JudgedMetric, builds=None, decided=None):
    """Fold what these verdicts open; without a word every run of a night has the same build."""
    of_night = {one.run_id: f"nightly of {one.run_id.split()[-1]}" for one in judged}
    alerts = build_alerts(judged, decided or {}, noon(9))
    return group_alerts(alerts, of_night if builds is None else builds)


def test_what_one_build_does_in_one_night_is_one_alert_wherever_it_shows() -> None:
    places = [
        QUESTION,
        OTHER,
        replace(QUESTION, scenario="smoke/dummy-run"),
        replace(QUESTION, baseline="cpu-0.26.0"),
    ]
    (group,) = folded(*(bad_in(one, hours=at) for at, one in enumerate(places)))
    assert {one.subject.testbed for one in group.members} == {QUESTION.testbed, "h100"}
    assert len(group.members) == 4
    assert group.status is Status.OPEN
    assert group.key == SUBJECT.key, "the first that opened gives the key"


@pytest.mark.parametrize(
    "other",
    [
        bad_in(OTHER, number=2),
        bad_in(OTHER, hours=14),
        bad_in(replace(OTHER, metric="accuracy.gsm8k", statistic="value")),
        bad_in(replace(OTHER, metric="contract.wrong_tokens", statistic="value"), effect=3.0),
        replace(bad_in(OTHER), verdict=Verdict.FAILED),
    ],
    ids=["another night", "the day after", "answers", "a contract", "a dead engine"],
)
def test_another_night_and_another_area_stay_apart(other) -> None:
    assert len(folded(bad_in(QUESTION), other)) == 2


def test_another_build_of_the_same_night_and_an_unknown_one_stay_apart() -> None:
    one, two = bad_in(QUESTION), bad_in(OTHER)
    assert len(folded(one, two, builds={one.run_id: "a", two.run_id: "b"})) == 2
    assert len(folded(one, two, builds={})) == 2


def test_an_alert_is_open_as_long_as_one_of_its_members_is() -> None:
    recovered = JudgedMetric(OTHER, GOOD, 0.0, "h100 2", night(2))
    (group,) = folded(bad_in(QUESTION), bad_in(OTHER), recovered)
    assert [one.status for one in group.members] == [Status.OPEN, Status.NOT_REPEATED]
    assert (group.status, group.current) == (Status.OPEN, group.members[:1])
    well = JudgedMetric(QUESTION, GOOD, 0.0, "epyc 3", night(3))
    (over,) = folded(bad_in(QUESTION), bad_in(OTHER), recovered, well)
    assert (over.status, over.current, over.key) == (Status.NOT_REPEATED, over.members, group.key)


def test_what_comes_back_later_is_an_alert_of_its_own() -> None:
    recovered = JudgedMetric(OTHER, GOOD, 0.0, "h100 2", night(2))
    groups = folded(bad_in(QUESTION), bad_in(OTHER), recovered, bad_in(OTHER, number=4))
    assert [len(group.members) for group in groups] == [1, 1]


def answers_to(alerts, act: Decision, hours: float) -> dict[str, Decisions]:
    at = noon(1) + timedelta(hours=hours)
    return {
        one.subject.key: Decisions((DecisionEntry(1, at, "ada", act, one.seen),)) for one in alerts
    }


def test_each_member_keeps_its_own_answer() -> None:
    judged = bad_in(QUESTION), bad_in(OTHER)
    (group,) = folded(*judged)
    (half,) = folded(*judged, decided=answers_to(group.members[:1], acknowledge("known"), 0))
    assert half.status is Status.OPEN
    assert [one.status for one in half.members] == [Status.OPEN, Status.ACKNOWLEDGED]
    (whole,) = folded(*judged, decided=answers_to(group.members, acknowledge("known"), 0))
    assert whole.status is Status.ACKNOWLEDGED
    assert (whole.version, len(whole.decisions.all)) == (2, 1), (
        "one decision, kept with each member"
    )


def test_what_is_between_two_releases_calls_nobody() -> None:
    releases = replace(QUESTION, contender="cpu-0.28.0")
    rows = [replace(releases, scenario=f"curated/{number}") for number in range(10)]
    (group,) = folded(*map(bad_in, rows))
    assert (group.status, len(group.members)) == (Status.RELEASE, 10)


def test_between_releases_answers_stay_and_a_person_may_open_it() -> None:
    judged = nights(GOOD, BAD, about=replace(QUESTION, contender="cpu-0.28.0"))
    (alert,) = build_alerts(judged, {}, noon(1))
    assert alert.status is Status.RELEASE
    for act, status in (
        (acknowledge("since 0.28"), Status.ACKNOWLEDGED),
        (reopen("look at it"), Status.OPEN),
    ):
        (answered,) = build_alerts(judged, answers_to([alert], act, 0), noon(1))
        assert answered.status is status


def test_what_calls_nobody_stays_apart_from_what_calls_somebody() -> None:
    releases = replace(QUESTION, contender="cpu-0.28.0")
    beside = replace(releases, baseline="nightly", testbed="h100")
    assert len(folded(bad_in(releases), bad_in(beside))) == 2
