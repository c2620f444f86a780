"""The order of sending, what is held, and what is tried again."""

from dataclasses import dataclass, field

import pytest

from hybridwatch.integrations.notify.channels import Slack
from hybridwatch.integrations.notify.clients import Receipt, UndeliveredError
from hybridwatch.integrations.notify.news import Message, TopicStatus
from hybridwatch.integrations.notify.sending import Sender
from tests.unit.integrations.notify.pretended import NOW, a_topic

TEAM = Slack(name="team", url_from="X")
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
        def door_of(_):
            return client

        return Sender(outbox, door_of, slept.append).send(TEAM), slept

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


def test_what_was_wrong_all_the_same_is_told(send) -> None:
    found, _ = send(Scripted(complaint="the label was left out"))
    assert len(found.sent) == 3
    assert set(found.troubles) == {"the label was left out"}


def test_a_number_of_an_issue_is_remembered(send, outbox) -> None:
    found, _ = send(Scripted())
    assert {outbox.place(one) for one in found.sent} == {"7"}
