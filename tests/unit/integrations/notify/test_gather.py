"""From a store to topics: alerts and what was not measured, in words that people read."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.analysis.alerts import Since, accept, acknowledge, mute
from hybridwatch.analysis.policy import Policy, Rule
from hybridwatch.database.update import open_index
from hybridwatch.errors import NotifyError
from hybridwatch.history.checkout import Checkout
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.news import News, TopicStatus, compute_id
from hybridwatch.records.run import Phase
from hybridwatch.records.store import write_run
from tests.builders import STARTED, a_run, noisy, with_failures
from tests.unit.integrations.notify.pretended import a_message
from tests.unit.pages.suite_stores import NOW, UPGRADE, act, alerts, put

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


def test_a_dead_engine_is_one_topic_and_its_reason_is_told(tmp_path) -> None:
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
