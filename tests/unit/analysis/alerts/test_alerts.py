"""From verdicts to alerts, and what becomes of what people said."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.analysis.alert_decisions import Decision, DecisionEntry, Decisions
from hybridwatch.analysis.alert_timeline import AlertQuestion, AlertSubject, TransitionKind
from hybridwatch.analysis.alerts import Status
from hybridwatch.analysis.cause import Area
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.verdict import Verdict
from tests.unit.analysis.alerts.builders import (
    QUESTION,
    SUBJECT,
    acknowledge,
    alert_of,
    assign,
    build_alerts,
    link,
    mute,
    night,
    nights,
    noon,
    note,
    reopen,
    unmute,
)

BAD, GOOD, OPEN_QUESTION = Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE
WARN = Policy((Rule("*", action=Action.WARN),))
WATCH = Policy((Rule("*", action=Action.WATCH),))


def after(*acts: tuple[Decision, int], verdicts=(BAD, BAD, BAD, BAD), effect=-0.1) -> Decisions:
    """What Ann did, each at the noon after a night."""
    known = Decisions()
    for act, day in acts:
        seen_so_far = nights(*verdicts[: day + 1], effect=effect)
        (alert,) = build_alerts(seen_so_far, {SUBJECT.key: known}, noon(day))
        entry = DecisionEntry(known.version + 1, noon(day), "Ann", act, alert.seen)
        known = Decisions((*known.entries, entry))
    return known


def changes(alert) -> list[tuple[TransitionKind, str]]:
    return [(transition.change, transition.by.run_id) for transition in alert.transitions]


@pytest.mark.parametrize(
    ("policy", "verdict", "rank"),
    [
        (Policy(), Verdict.REGRESSION, Action.BLOCK),
        (Policy(), Verdict.FAILED, Action.BLOCK),
        (Policy(), Verdict.MISSING, Action.BLOCK),
        (Policy(), Verdict.INCONCLUSIVE, None),
        (Policy(), Verdict.NOT_COMPARABLE, None),
        (Policy(), Verdict.EQUIVALENT, None),
        (Policy(), Verdict.IMPROVEMENT, None),
        (WARN, Verdict.REGRESSION, Action.WARN),
        (WARN, Verdict.FAILED, Action.BLOCK),
        (WARN, Verdict.MISSING, Action.BLOCK),
        (WATCH, Verdict.REGRESSION, None),
        (WATCH, Verdict.FAILED, Action.WARN),
        (WATCH, Verdict.MISSING, Action.WARN),
    ],
)
def test_alerts_open_as_the_gate_would_stop(policy, verdict, rank) -> None:
    alerts = build_alerts(nights(verdict), {}, noon(0), policy)
    assert [alert.rank for alert in alerts] == ([rank] if rank else [])


def test_a_regression_that_is_not_sure_ranks_lower() -> None:
    (judged,) = nights(BAD)
    (alert,) = build_alerts([replace(judged, sure=False)], {}, noon(0))
    assert alert.rank is Action.WARN


def test_it_opens_once_and_says_by_which_run() -> None:
    alert = alert_of(GOOD, BAD, BAD)
    assert alert.status is Status.OPEN
    assert changes(alert) == [(TransitionKind.OPENED, "00000001")]
    assert alert.opened_by.run_id == "00000001"
    assert alert.newest.run_id == "00000002"
    assert not alert.is_over


@pytest.mark.parametrize("good", [Verdict.EQUIVALENT, Verdict.IMPROVEMENT])
def test_it_resolves_by_itself_and_says_by_which_run(good) -> None:
    alert = alert_of(BAD, BAD, good)
    assert alert.status is Status.RESOLVED
    assert alert.is_over
    assert alert.transitions[-1].by.run_id == "00000002"


@pytest.mark.parametrize("unclear", [Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE])
def test_what_shows_nothing_leaves_it_as_it_was(unclear) -> None:
    assert alert_of(BAD, unclear).status is Status.OPEN
    assert alert_of(BAD, BAD, GOOD, unclear).status is Status.RESOLVED


def test_under_watch_a_failure_is_over_when_anything_was_measured() -> None:
    for measured in (BAD, OPEN_QUESTION, GOOD):
        (alert,) = build_alerts(nights(Verdict.FAILED, measured), {}, noon(1), WATCH)
        assert alert.status is Status.RESOLVED


def test_it_reopens_with_its_history() -> None:
    alert = alert_of(BAD, GOOD, OPEN_QUESTION, BAD)
    assert alert.status is Status.OPEN
    assert changes(alert) == [
        (TransitionKind.OPENED, "00000000"),
        (TransitionKind.NOT_REPEATED, "00000001"),
        (TransitionKind.REOPENED, "00000003"),
    ]


def test_the_order_of_the_verdicts_does_not_matter() -> None:
    told = nights(BAD, GOOD, BAD, OPEN_QUESTION, GOOD, BAD)
    shuffled = random.Random(7).sample(told, len(told))
    assert build_alerts(shuffled, {}, noon(5)) == build_alerts(told, {}, noon(5))


def test_acknowledged_stays_while_the_trouble_stays() -> None:
    decisions = after((acknowledge("known"), 0))
    for rest in ([], [BAD], [OPEN_QUESTION, BAD]):
        assert alert_of(BAD, *rest, decisions=decisions).status is Status.ACKNOWLEDGED


@pytest.mark.parametrize("other", [Verdict.FAILED, Verdict.MISSING])
def test_acknowledged_does_not_cover_another_trouble(other) -> None:
    decided = {SUBJECT.key: after((acknowledge("known"), 0))}
    both = build_alerts(nights(BAD, other), decided, noon(1))
    assert [(alert.status, alert.cause.lead.verdict) for alert in both] == [
        (Status.OPEN, other),
        (Status.ACKNOWLEDGED, BAD),
    ]


@pytest.mark.parametrize(("effect", "status"), [(-0.2, Status.ACKNOWLEDGED), (-0.21, Status.OPEN)])
def test_acknowledged_does_not_cover_more_than_twice_the_effect(effect, status) -> None:
    first, second = nights(BAD, BAD)
    decided = {SUBJECT.key: after((acknowledge("known"), 0))}
    (alert,) = build_alerts([first, replace(second, effect=effect)], decided, noon(1))
    assert alert.status is status


def test_acknowledged_as_a_warning_does_not_cover_what_blocks() -> None:
    first, second = nights(BAD, BAD)
    unsure = replace(first, sure=False)
    (before,) = build_alerts([unsure], {}, noon(0))
    entry = DecisionEntry(1, noon(0), "Ann", acknowledge("maybe noise"), before.seen)
    decided = {SUBJECT.key: Decisions((entry,))}
    (alert,) = build_alerts([unsure, second], decided, noon(1))
    assert (alert.status, alert.rank) == (Status.OPEN, Action.BLOCK)


def test_acknowledged_ends_with_a_recovery() -> None:
    decisions = after((acknowledge("known"), 0))
    assert alert_of(BAD, BAD, GOOD, decisions=decisions).status is Status.RESOLVED
    assert alert_of(BAD, BAD, GOOD, BAD, decisions=decisions).status is Status.OPEN


def test_acknowledged_holds_where_only_the_newest_verdict_is_reported() -> None:
    newest = nights(BAD, BAD)[-1]
    decided = {SUBJECT.key: after((acknowledge("known"), 0))}
    (alert,) = build_alerts([newest], decided, noon(1))
    assert alert.status is Status.ACKNOWLEDGED


def test_reopening_takes_an_acknowledgement_back() -> None:
    decisions = after((acknowledge("known"), 0), (reopen("not this one"), 1))
    assert alert_of(BAD, BAD, decisions=decisions).status is Status.OPEN
    assert alert_of(BAD, BAD, GOOD, decisions=decisions).status is Status.RESOLVED


def test_reopening_doubts_a_recovery_until_the_next_one() -> None:
    told = (BAD, GOOD)
    decisions = after((reopen("it is slower here"), 1), verdicts=told)
    assert alert_of(*told, decisions=decisions).status is Status.OPEN
    assert alert_of(*told, OPEN_QUESTION, decisions=decisions).status is Status.OPEN
    assert alert_of(*told, GOOD, decisions=decisions).status is Status.NOT_REPEATED


def test_a_doubted_recovery_can_be_acknowledged() -> None:
    told = (BAD, GOOD)
    decisions = after((reopen("slower here"), 1), (acknowledge("seen"), 1), verdicts=told)
    assert alert_of(*told, decisions=decisions).status is Status.ACKNOWLEDGED


def test_muted_comes_back_by_itself() -> None:
    end = noon(2)
    decisions = after((mute(end, noon(0)), 0))
    told = (BAD, BAD, BAD)
    muted = alert_of(*told, decisions=decisions, now=end - timedelta(seconds=1))
    assert (muted.status, muted.muted_until) == (Status.MUTED, end)
    back = alert_of(*told, decisions=decisions, now=end)
    assert (back.status, back.muted_until) == (Status.OPEN, None)


def test_muted_stays_over_a_reopening_and_tells_a_recovery() -> None:
    decisions = after((mute(night(9), noon(0)), 0))
    resolved = alert_of(BAD, BAD, GOOD, decisions=decisions)
    assert (resolved.status, resolved.muted_until) == (Status.RESOLVED, None)
    assert alert_of(BAD, BAD, GOOD, BAD, decisions=decisions).status is Status.MUTED


@pytest.mark.parametrize("end", [unmute(), reopen()])
def test_a_mute_can_be_ended(end) -> None:
    decisions = after((mute(night(9), noon(0)), 0), (end, 1))
    assert alert_of(BAD, BAD, decisions=decisions).status is Status.OPEN


def test_acknowledged_before_a_mute_is_acknowledged_after_it() -> None:
    decisions = after((acknowledge("known"), 0), (mute(noon(1), noon(0)), 0))
    assert alert_of(BAD, decisions=decisions).status is Status.MUTED
    assert alert_of(BAD, BAD, BAD, decisions=decisions).status is Status.ACKNOWLEDGED


def test_the_newest_issue_and_assignee_count_and_every_note_stays() -> None:
    decisions = after(
        (link("https://example.org/1"), 0),
        (assign("Bob"), 0),
        (note("first"), 0),
        (link("https://example.org/2"), 1),
        (assign(""), 1),
        (note("second"), 1),
    )
    assert decisions.issue == "https://example.org/2"
    assert decisions.assignee == ""
    assert [entry.decision.text for entry in decisions.notes] == ["first", "second"]
    assert decisions.version == 6
    assert alert_of(BAD, BAD, decisions=decisions).status is Status.OPEN


def test_decisions_without_verdicts_give_no_alert() -> None:
    assert build_alerts([], {SUBJECT.key: after((note("x"), 0))}, noon(0)) == ()


def about(scenario: str) -> AlertQuestion:
    return replace(QUESTION, scenario=scenario)


def test_what_is_urgent_comes_first() -> None:
    policy = Policy((Rule("*", "warned", Action.WARN),))
    told = [
        *nights(BAD, GOOD, about=about("resolved")),
        *nights(BAD, about=about("warned")),
        *nights(BAD, about=about("slow-older")),
        *nights(GOOD, BAD, about=about("slow-newer")),
        *nights(Verdict.FAILED, about=about("failed")),
        *nights(BAD, about=about("known")),
    ]
    (known,) = build_alerts(nights(BAD, about=about("known")), {}, noon(0))
    entry = DecisionEntry(1, noon(0), "Ann", acknowledge("known"), known.seen)
    decided = {known.subject.key: Decisions((entry,))}
    alerts = build_alerts(random.Random(3).sample(told, len(told)), decided, noon(1), policy)
    assert [alert.subject.scenario for alert in alerts] == [
        "failed",
        "slow-newer",
        "slow-older",
        "warned",
        "known",
        "resolved",
    ]


def test_a_key_is_stable_and_of_every_part() -> None:
    # Stored in databases and in addresses: it must never change.
    stored = replace(SUBJECT, contender="cpu-0.28.0")
    assert stored.key == "dc768cdd2fbb607e016b5b5bfdbd6588"
    texts = [part for part in AlertSubject.__slots__ if part != "area"]
    others = {replace(SUBJECT, **{part: "x"}).key for part in texts}  # type: ignore[arg-type]
    others.add(replace(SUBJECT, area=Area.HOST).key)
    assert len(others | {SUBJECT.key}) == 6


def test_the_key_of_a_metric_is_the_one_that_its_alert_had() -> None:
    assert replace(QUESTION, contender="cpu-0.28.0").key == "f31bfd6dbc2a8f88035fe11fe286be78"


def test_parts_cannot_be_shifted_into_each_other() -> None:
    one = replace(SUBJECT, contender='a","scenario":"b', scenario="c")
    assert one.key != replace(SUBJECT, contender="a", scenario='b","scenario":"c').key


def test_hostile_names_have_a_key() -> None:
    assert len(replace(SUBJECT, contender="\ud800\x00\u202e<b>").key) == 32
