"""The outbox, and the order of sending: what is held, and what is tried again."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import IntegrityError

from hybridwatch.analysis.alerts import Since
from hybridwatch.analysis.policy import Action
from hybridwatch.database.connection import NEWEST, Database, find_version, parsed
from hybridwatch.database.schema import METADATA
from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.channels import Slack
from hybridwatch.integrations.notify.clients import Receipt, UndeliveredError
from hybridwatch.integrations.notify.news import Content, Message, News, Topic, TopicStatus
from hybridwatch.integrations.notify.sending import Outbox, Sender
from tests.unit.integrations.notify.pretended import CONTENT, NOW, a_topic

TEAM = Slack(name="team", url_from="X")
OTHER = Slack(name="other", url_from="X")
GAP = Content("Not measured", "", "", "epyc-4c", "block", "gap", missing=("smoke/x: missing",))


def find(outbox, *topics, channel=TEAM, now=NOW, silently=False) -> list[News]:
    """Find what is new, keep it, and name it."""
    steps = outbox.plan(channel, topics, now)
    outbox.keep(steps, silently=silently)
    return [step.message.news for step in steps if step.message is not None]


def test_the_migration_makes_the_tables_that_the_schema_has(outbox, place) -> None:
    with Database(parsed(place, "test")).reading() as connection:
        assert find_version(connection) == NEWEST
        found = inspect(connection)
        tables = [one for one in METADATA.tables.values() if one.name.startswith("notify_")]
        assert len(tables) == 2
        for table in tables:
            columns = {one["name"]: one["nullable"] for one in found.get_columns(table.name)}
            assert columns == {one.name: bool(one.nullable) for one in table.columns}
            keys = found.get_pk_constraint(table.name)["constrained_columns"]
            assert keys == [one.name for one in table.primary_key.columns]
            names = {one["name"] for one in found.get_indexes(table.name)}
            assert names == {one.name for one in table.indexes}


def test_news_is_found_once_and_waits_until_it_is_sent(outbox) -> None:
    assert find(outbox, a_topic()) == [News.OPENED]
    assert find(outbox, a_topic()) == []
    (message,) = outbox.waiting("team")
    assert (message.news, message.content, message.made_at) == (News.OPENED, CONTENT, NOW)
    outbox.failed(message, "down")
    assert [one.trouble for one in outbox.waiting("team")] == ["down"]
    outbox.sent(message, NOW, place="12")
    assert outbox.waiting("team") == []
    assert outbox.place(message) == "12"


def test_each_channel_hears_by_itself(outbox) -> None:
    find(outbox, a_topic())
    assert find(outbox, a_topic(), channel=OTHER) == [News.OPENED]
    ids = {outbox.waiting(name)[0].id for name in ("team", "other")}
    assert len(ids) == 2


def test_the_whole_story_of_a_topic_is_reported_in_its_order(outbox) -> None:
    timeline = [
        (a_topic(), News.OPENED),
        (a_topic(since=lambda _: Since.WORSE), News.WORSE),
        (a_topic(TopicStatus.QUIET), None),
        (a_topic(), News.AGAIN),
        (a_topic(TopicStatus.CLOSED), News.CLOSED),
        (a_topic(TopicStatus.OVER), None),
        (a_topic(), News.BACK),
        (a_topic(TopicStatus.OVER), News.RECOVERED),
    ]
    for topic, news in timeline:
        assert find(outbox, topic) == ([news] if news else [])
    waiting = outbox.waiting("team")
    assert [one.news for one in waiting] == [news for _, news in timeline if news]
    assert [one.number for one in waiting] == [1, 2, 3, 4, 5, 6]
    assert len({one.id for one in waiting}) == 6


def test_what_is_urgent_goes_first_also_when_found_at_once(outbox) -> None:
    find(outbox, *(a_topic(key=f"{number:032x}") for number in (9, 3, 7)))
    assert [int(one.topic, 16) for one in outbox.waiting("team")] == [9, 3, 7]


def test_what_nothing_speaks_of_any_more_is_over(outbox) -> None:
    gap = a_topic(key="0" * 32, is_gap=True, content=lambda: GAP)
    find(outbox, a_topic(), gap)
    assert sorted(news.value for news in find(outbox)) == ["gone", "recovered"]
    assert find(outbox) == []
    assert find(outbox, gap) == [News.BACK]


def test_what_somebody_answered_before_anybody_heard_is_not_told(outbox) -> None:
    assert find(outbox, a_topic(TopicStatus.QUIET)) == []
    assert find(outbox, a_topic(TopicStatus.OVER)) == []
    assert find(outbox, a_topic()) == [News.OPENED]


def test_who_does_not_want_to_hear_of_it_does_not_and_who_heard_hears_the_end(outbox) -> None:
    smoke = Slack(name="team", url_from="X", scenarios=["smoke"])
    other = a_topic(scenarios=("curated/x",))
    assert find(outbox, other, channel=smoke) == []
    find(outbox, a_topic(), channel=smoke)
    curated = Slack(name="team", url_from="X", scenarios=["curated"], gaps=False)
    assert find(outbox, a_topic(TopicStatus.OVER), channel=curated) == [News.RECOVERED]
    gap = a_topic(key="0" * 32, is_gap=True, scenarios=(), content=lambda: GAP)
    assert find(outbox, gap, channel=curated) == []


def test_what_is_skipped_is_heard_and_not_sent(outbox) -> None:
    assert find(outbox, a_topic(), silently=True) == [News.OPENED]
    assert outbox.waiting("team") == []
    assert find(outbox, a_topic()) == []
    assert find(outbox, a_topic(TopicStatus.OVER)) == [News.RECOVERED]


def test_the_same_news_has_the_same_id_though_the_database_was_lost(outbox, tmp_path) -> None:
    find(outbox, a_topic())
    again = Outbox(Database(parsed(f"sqlite:///{tmp_path}/again.sqlite", "test"), NotifyError))
    again.keep([])
    find(again, a_topic(), now=NOW + timedelta(days=1))
    assert again.waiting("team")[0].id == outbox.waiting("team")[0].id


def test_what_is_heard_and_what_is_to_be_sent_are_kept_together_or_not_at_all(outbox) -> None:
    """Planted: the second of two messages cannot be kept."""
    steps = outbox.plan(TEAM, [a_topic()], NOW)
    with pytest.raises(IntegrityError):
        outbox.keep([*steps, *steps])
    assert outbox.waiting("team") == []
    assert find(outbox, a_topic()) == [News.OPENED]


def test_what_waits_for_a_channel_that_is_gone_is_counted(outbox) -> None:
    find(outbox, a_topic())
    assert outbox.orphaned(["team"]) == {}
    assert outbox.orphaned(["other"]) == {"team": 1}


def test_looking_makes_no_database(tmp_path) -> None:
    path = tmp_path / "none.sqlite"
    outbox = Outbox(Database(parsed(f"sqlite:///{path}", "test"), NotifyError))
    assert [step.message.news for step in outbox.plan(TEAM, [a_topic()], NOW) if step.message] == [
        News.OPENED
    ]
    assert outbox.waiting("team") == []
    assert outbox.orphaned([]) == {}
    assert not path.exists()


def test_one_sends_at_a_time(outbox, place) -> None:
    second = Outbox(Database(parsed(place, "test"), NotifyError))
    waits: list[float] = []
    told = "another process has been sending for 1 s"
    with outbox.alone(0), pytest.raises(NotifyError, match=told), second.alone(1, waits.append):
        pytest.fail("two send at a time")
    assert len(waits) == 5
    with second.alone(0):
        waits.clear()
    assert waits == []


def test_who_waits_comes_in_when_the_other_ends(outbox, place) -> None:
    second = Outbox(Database(parsed(place, "test"), NotifyError))
    claim = outbox.alone(0)
    claim.__enter__()
    entered = False
    with second.alone(5, lambda _: claim.__exit__(None, None, None)):
        entered = True
    assert entered


def places(*standings: TopicStatus, **changes) -> list[Topic]:
    """What one cause does in several places; of the first one others are told."""
    return [
        a_topic(one, key=f"{number:032x}", cause="0" * 32, **changes)
        for number, one in enumerate(standings)
    ]


OPEN, QUIET, CLOSED, OVER, NOT_REPEATED = TopicStatus


def test_one_cause_is_one_message_from_its_beginning_to_its_end(outbox) -> None:
    timeline = [
        (places(OPEN, OPEN), News.OPENED),
        (places(OPEN, OPEN, OPEN), None),  # another machine shows it
        (places(OVER, OPEN, OPEN), None),
        (places(OVER, QUIET, OPEN), None),
        (places(OVER, QUIET, QUIET), None),
        (places(OVER, OPEN, QUIET), News.AGAIN),
        (places(OVER, OVER, OVER), News.RECOVERED),
        (places(OVER, OVER, OVER), None),
    ]
    for topics, news in timeline:
        assert find(outbox, *topics) == ([news] if news else []), topics
    waiting = outbox.waiting("team")
    assert {one.topic for one in waiting} == {"0" * 32}, "one issue for one cause"
    assert [one.number for one in waiting] == [1, 2, 3]


def test_a_cause_is_not_repeated_where_every_place_is(outbox) -> None:
    find(outbox, *places(OPEN, OPEN))
    assert find(outbox, *places(NOT_REPEATED, OPEN)) == []
    assert find(outbox, *places(NOT_REPEATED, NOT_REPEATED)) == [News.NOT_REPEATED]
    find(outbox, *places(OPEN, OPEN))
    assert find(outbox, *places(NOT_REPEATED, OVER)) == [News.RECOVERED]


def test_two_causes_are_two_messages(outbox) -> None:
    other = a_topic(key="f" * 32, cause="f" * 32)
    assert find(outbox, *places(OPEN, OPEN), other) == [News.OPENED, News.OPENED]


def test_what_joins_and_stops_the_gate_is_news_where_the_others_only_warned(outbox) -> None:
    warns = {"rank": Action.WARN, "content": lambda: replace(CONTENT, rank="warn")}
    one, two = places(OPEN, OPEN, **warns)
    assert find(outbox, one) == [News.OPENED]
    assert find(outbox, one, two) == []
    assert find(outbox, one, two, a_topic(key="2" * 32, cause="0" * 32)) == [News.WORSE]


def test_of_what_was_told_place_by_place_before_nothing_is_reported_again(outbox) -> None:
    alone = [replace(topic, cause="") for topic in places(OPEN, OPEN)]
    assert find(outbox, *alone) == [News.OPENED, News.OPENED]
    assert find(outbox, *places(OPEN, OPEN)) == []
    assert find(outbox, *places(OVER, OVER)) == [News.RECOVERED]


def test_a_cause_that_nothing_speaks_of_any_more_is_gone_once(outbox) -> None:
    find(outbox, *places(OPEN, OPEN))
    assert find(outbox) == [News.GONE]
    assert find(outbox) == []


def test_what_comes_back_in_one_place_is_news_of_its_own(outbox) -> None:
    find(outbox, *places(OPEN, OPEN))
    first, second = places(OPEN, OPEN)
    assert find(outbox, replace(second, cause=second.key), first) == []
    find(outbox, *places(OVER, OVER))
    assert find(outbox, replace(second, cause=second.key), places(OVER)[0]) == [News.BACK]


def test_who_wants_one_place_hears_of_the_cause(outbox) -> None:
    there = Slack(name="team", url_from="X", testbeds=["h100*"])
    first, second = places(OPEN, OPEN)
    assert find(outbox, first, second, channel=there) == []
    assert find(outbox, first, replace(second, testbed="h100-1"), channel=there) == [News.OPENED]


FIRST, SECOND = "1" * 32, "2" * 32
BUSY = UndeliveredError("busy", again=True)
REFUSED = UndeliveredError("refused", alone=True)
DOWN = UndeliveredError("down")


@dataclass
class Scripted:
    """A way out that fails as it is told to."""

    failures: list[UndeliveredError | None] = field(default_factory=list)
    came: list[Message] = field(default_factory=list)
    complaint: str = ""

    def deliver(self, message: Message, place: str) -> Receipt:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        self.came.append(message)
        return Receipt(place or "7", self.complaint)


@pytest.fixture
def send(outbox):
    """Two topics open and the first one ends, then everything is sent."""
    for topics in (
        (a_topic(key=FIRST), a_topic(key=SECOND)),
        (a_topic(TopicStatus.OVER, key=FIRST),),
    ):
        rest = (a_topic(key=SECOND),) if len(topics) == 1 else ()
        outbox.keep(outbox.plan(TEAM, [*topics, *rest], NOW))
    slept: list[float] = []

    def call(client: Scripted):
        def client_of(_):
            return client

        return Sender(outbox, client_of, slept.append).send(TEAM), slept

    return call


def test_all_is_sent_in_order_and_once(send, outbox) -> None:
    client = Scripted()
    found, _ = send(client)
    assert [(one.topic, one.number) for one in found.sent] == [(FIRST, 1), (SECOND, 1), (FIRST, 2)]
    assert (found.waiting, found.troubles) == ([], [])
    again, _ = send(client)
    assert (again.sent, len(client.came)) == ([], 3)


def test_a_busy_service_is_tried_three_times(send) -> None:
    found, slept = send(Scripted([BUSY, BUSY]))
    assert len(found.sent) == 3
    assert slept == [1.0, 5.0]


def test_a_service_that_stays_busy_is_left_until_the_next_call(send) -> None:
    found, slept = send(Scripted([BUSY] * 3))
    assert (len(found.sent), len(found.waiting), len(slept)) == (0, 3, 2)
    assert found.troubles == ["busy"]
    after, _ = send(Scripted())
    assert [one.number for one in after.sent] == [1, 1, 2]


def test_a_service_may_say_how_long_to_wait_but_not_too_long(send) -> None:
    _, slept = send(Scripted([UndeliveredError("busy", again=True, wait_s=30)]))
    assert slept == [30.0]
    found, slept = send(Scripted([UndeliveredError("busy", again=True, wait_s=90)]))
    assert slept == [30.0]
    assert found.troubles == []


def test_who_asks_for_a_long_wait_is_left_until_the_next_call(send) -> None:
    found, slept = send(Scripted([UndeliveredError("busy", again=True, wait_s=90)]))
    assert (found.troubles, slept) == (["busy"], [])


def test_what_is_refused_holds_up_only_its_own_topic(send, outbox) -> None:
    found, _ = send(Scripted([REFUSED]))
    assert [one.topic for one in found.sent] == [SECOND]
    assert [one.number for one in found.waiting] == [1, 2], "no end before its beginning"
    assert found.troubles == ["Slower in smoke/dummy-run: refused"]
    assert [one.trouble for one in outbox.waiting("team")] == ["refused", ""]


def test_a_channel_that_is_down_is_not_asked_again(send) -> None:
    client = Scripted([DOWN])
    found, slept = send(client)
    assert (len(found.waiting), client.came, slept) == (3, [], [])


def test_a_way_out_that_cannot_be_opened_keeps_everything(outbox, send) -> None:
    def broken(_):
        raise UndeliveredError("X: expected an address in the environment, found none")

    found = Sender(outbox, broken).send(TEAM)
    assert len(found.waiting) == 3
    assert found.troubles == ["X: expected an address in the environment, found none"]


def test_what_was_wrong_all_the_same_is_reported(send) -> None:
    found, _ = send(Scripted(complaint="the label was left out"))
    assert len(found.sent) == 3
    assert set(found.troubles) == {"the label was left out"}


def test_a_number_of_an_issue_is_remembered(send, outbox) -> None:
    found, _ = send(Scripted())
    assert {outbox.place(one) for one in found.sent} == {"7"}
