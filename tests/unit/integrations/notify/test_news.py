"""What is news to a channel, and from a store to topics, in words that people read."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.analysis.alerts import Since, since
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.queries import open_index
from hybridwatch.errors import NotifyError
from hybridwatch.history.checkout import Checkout
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import News, TopicStatus, compute_id, find_news
from hybridwatch.records.run import Phase
from hybridwatch.records.store import write_run
from tests.builders import STARTED, a_run, noisy, with_failures
from tests.unit.analysis.alerts.builders import (
    QUESTION,
    accept,
    acknowledge,
    build_alerts,
    mute,
    nights,
    noon,
)
from tests.unit.integrations.notify.pretended import a_message, a_topic, told
from tests.unit.pages.suite_stores import NOW, UPGRADE, act, alerts, put

OPEN, QUIET, CLOSED, OVER, ONCE = TopicStatus
BAD, GOOD, OPEN_QUESTION = Verdict.REGRESSION, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        (None, OPEN, News.OPENED),
        (None, QUIET, None),
        (None, CLOSED, None),
        (None, OVER, None),
        (OPEN, OPEN, None),
        (OPEN, QUIET, None),
        (OPEN, CLOSED, News.CLOSED),
        (OPEN, OVER, News.RECOVERED),
        (QUIET, OPEN, News.AGAIN),
        (QUIET, QUIET, None),
        (QUIET, CLOSED, News.CLOSED),
        (QUIET, OVER, News.RECOVERED),
        (CLOSED, OPEN, News.BACK),
        (CLOSED, QUIET, None),
        (CLOSED, CLOSED, None),
        (CLOSED, OVER, None),
        (OVER, OPEN, News.BACK),
        (OVER, QUIET, None),
        (OVER, CLOSED, None),
        (OVER, OVER, None),
        (None, ONCE, None),
        (OPEN, ONCE, News.NOT_REPEATED),
        (QUIET, ONCE, News.NOT_REPEATED),
        (CLOSED, ONCE, None),
        (ONCE, OPEN, News.BACK),
    ],
)
def test_news_by_what_was_heard_and_what_is(before, now, news) -> None:
    assert find_news(a_topic(now), None if before is None else told(before)) is news


@pytest.mark.parametrize(
    ("moved", "news"), [(Since.WORSE, News.WORSE), (Since.BACK, News.BACK), (Since.NOTHING, None)]
)
def test_what_stays_open_is_news_when_it_moves(moved, news) -> None:
    assert find_news(a_topic(since=lambda _: moved), told()) is news
    again = news or News.AGAIN
    assert find_news(a_topic(since=lambda _: moved), told(QUIET)) is again


def judged(*effects: float | None):
    """A night for each: the effect of a regression, or none for a good one."""
    return [
        one
        for number, effect in enumerate(effects)
        for one in nights(*[GOOD if effect is None else BAD] * (number + 1), effect=effect)[-1:]
    ]


@pytest.mark.parametrize(
    ("effects", "moved"),
    [
        ((0.1, 0.1), Since.NOTHING),
        ((0.1, 0.19), Since.NOTHING),
        ((0.1, 0.21), Since.WORSE),
        ((0.2, 0.1), Since.NOTHING),
        ((0.1, None, 0.1), Since.BACK),
        ((0.1, 0.1, None, 0.5), Since.BACK),
    ],
)
def test_an_alert_moves_when_it_grows_much_or_comes_back(effects, moved) -> None:
    (before,) = build_alerts(judged(effects[0]), {}, noon(0))
    (after,) = build_alerts(judged(*effects), {}, noon(len(effects)))
    assert since(after, before.seen) is moved


def test_an_alert_moves_when_another_metric_blocks() -> None:
    tpot = replace(QUESTION, metric="tpot")
    first = nights(BAD)
    second = [*nights(BAD, BAD), *nights(BAD, BAD, about=tpot)[1:]]
    (before,) = build_alerts(first, {}, noon(0))
    (after,) = build_alerts(second, {}, noon(1))
    assert since(after, before.seen) is Since.WORSE
    warned = Policy((Rule("tpot", action=Action.WARN),))
    (mild,) = build_alerts(second, {}, noon(1), warned)
    assert since(mild, before.seen) is Since.NOTHING, "what only warns beside it is no news"


def test_an_alert_moves_when_it_blocks_and_had_only_warned() -> None:
    doubted = [replace(one, sure=False) for one in judged(0.1)]
    (before,) = build_alerts(doubted, {}, noon(0))
    (after,) = build_alerts([*doubted, *judged(0.1, 0.1)[1:]], {}, noon(1))
    assert (before.rank, after.rank) == (Action.WARN, Action.BLOCK)
    assert since(after, before.seen) is Since.WORSE


SCENARIO = "smoke/padded-graph-rows"
AFTER = STARTED + timedelta(days=1, hours=1)
"""An hour after the first night's run: nothing is missing yet."""


def topics(results, now=AFTER, policy=None):
    checkout = Checkout() if policy is None else Checkout(policy=policy)
    place = TopicPlace(
        results, open_index(results), checkout, dashboard="https://watch.example.org"
    )
    return gather_topics(place, now)


def test_one_topic_stands_for_one_cause_and_not_for_a_metric(tmp_path) -> None:
    put(tmp_path, 1, broken=7.0, slower=1.5, builds=UPGRADE)
    found = topics(tmp_path)
    assert [topic.content().what for topic in found] == ["A contract broke", "Slower"]
    contract, slower = (topic.content() for topic in found)
    assert (slower.scenario, slower.contender) == (SCENARIO, "nightly")
    assert slower.detail.startswith("ttft +5")
    assert [one.metric for one in contract.metrics] == ["contract.padded_rows_prefilling"]
    assert slower.run == "00000001"
    (alert,) = (one for one in alerts(tmp_path) if one.subject.key == found[1].key)
    assert slower.link == f"https://watch.example.org/alerts?alert={alert.subject.key}"


def test_a_dead_engine_is_one_topic_and_its_reason_is_reported(tmp_path) -> None:
    moment = STARTED + timedelta(days=1)
    run = a_run({"ttft": noisy(0.1)}, {}, id="0000dead", started_at=moment, builds=UPGRADE)
    reason = "the engine died: out of memory"
    write_run(tmp_path, with_failures(run, 1, Phase.PERFORMANCE, 2, reason))
    (topic,) = topics(tmp_path)
    content = topic.content()
    assert (content.area, content.what) == ("engine", "The engine died")
    assert content.detail.startswith("out of memory; ")


def test_how_people_answered_is_how_it_stands(tmp_path) -> None:
    put(tmp_path, 1, broken=7.0, builds=UPGRADE)
    assert [topic.standing for topic in topics(tmp_path)] == [TopicStatus.OPEN]
    for action, standing in (
        (acknowledge("known"), TopicStatus.QUIET),
        (mute(NOW + timedelta(days=5), NOW), TopicStatus.QUIET),
        (accept("it is so"), TopicStatus.CLOSED),
    ):
        act(tmp_path, alerts(tmp_path)[0], action, "ada")
        assert topics(tmp_path)[0].standing is standing
    assert topics(tmp_path)[0].content().note == "expected by ada: it is so"
    put(tmp_path, 2, builds=UPGRADE)
    assert topics(tmp_path)[0].standing is TopicStatus.OVER


def test_what_a_channel_saw_can_be_held_against_what_came_after(tmp_path) -> None:
    put(tmp_path, 1, broken=7.0, builds=UPGRADE)
    seen = topics(tmp_path)[0].seen
    assert topics(tmp_path)[0].since(seen) is Since.NOTHING
    put(tmp_path, 2, broken=70.0, builds=UPGRADE)
    assert topics(tmp_path)[0].since(seen) is Since.WORSE
    put(tmp_path, 3, builds=UPGRADE)
    put(tmp_path, 4, broken=7.0, builds=UPGRADE)
    assert topics(tmp_path)[0].since(seen) is Since.BACK


def test_what_one_machine_did_not_measure_is_one_topic(tmp_path) -> None:
    for number, scenario in enumerate(("smoke/one", "smoke/two"), 1):
        put(tmp_path, number, builds=UPGRADE, scenario=scenario)
    (topic,) = topics(tmp_path, now=STARTED + timedelta(days=20))
    assert topic.is_gap
    assert topic.scenarios == ("smoke/one", "smoke/two")
    content = topic.content()
    assert (content.what, content.detail) == ("Not measured", "2 expected scenarios")
    assert [line.partition(":")[0] for line in content.missing] == ["smoke/one", "smoke/two"]
    message = a_message(content=content)
    assert message.headline == "Not measured on epyc-4c"
    assert replace(message, news=News.RECOVERED).headline == "Recovered: not measured on epyc-4c"


def test_a_gap_grows_when_another_scenario_is_missing(tmp_path) -> None:
    policy = Policy((Rule("*"),), expected=("smoke/one",))
    wider = Policy((Rule("*"),), expected=("smoke/one", "smoke/two"))
    put(tmp_path, 1, builds=UPGRADE, scenario="smoke/one")
    put(tmp_path, 2, builds=UPGRADE, scenario="smoke/two")
    late = STARTED + timedelta(days=20)
    (one,), (both,) = topics(tmp_path, late, policy), topics(tmp_path, late, wider)
    assert one.key == both.key
    assert both.since(one.seen) is Since.WORSE
    assert one.since(both.seen) is Since.NOTHING


def test_a_folder_without_records_is_refused(tmp_path) -> None:
    """What was told would all seem to be over."""
    with pytest.raises(NotifyError, match="expected a results folder with records, found none"):
        topics(tmp_path)


def test_two_stores_with_the_same_records_have_the_same_topics(tmp_path) -> None:
    for name in ("a", "b"):
        put(tmp_path / name, 1, broken=7.0, builds=UPGRADE)
    first, second = (topics(tmp_path / name)[0] for name in ("a", "b"))
    assert (first.key, first.seen) == (second.key, second.seen)
    ids = {compute_id("team", one.key, News.OPENED, 1, one.seen) for one in (first, second)}
    assert len(ids) == 1


def test_long_lists_are_cut_and_counted() -> None:
    content = replace(a_message().content, metrics=(), missing=tuple(map(str, range(40))))
    lines = a_message(content=content).lines()
    assert (len(lines), lines[-1]) == (31, "and 10 more")
