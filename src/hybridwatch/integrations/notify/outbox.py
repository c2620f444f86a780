"""What is to be sent, and what channels have heard, in the one database.

News and what its channel has heard by it are written in one transaction: a process that is killed
before it has lost nothing, since the next one finds the same news, and after it the message is here
until it is sent. One process at a time tells the news of a database.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, func, insert, select, update

from hybridwatch.database.connection import Database
from hybridwatch.database.migration import reading_kept, writing_kept
from hybridwatch.database.schema import MESSAGE, TOLD
from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.channels import Channel
from hybridwatch.integrations.notify.message import STORED_CONTENT, Message, News, compute_id
from hybridwatch.integrations.notify.topic import (
    DeliveryState,
    Topic,
    TopicStatus,
    find_news,
    news_of_cause,
)

_CLAIM: Final = "notify"
_LOOK_AGAIN_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class OutboxStep:
    """What a channel shall have heard of a topic, and the message by which it hears; if any."""

    channel: str
    topic: str
    told: DeliveryState
    message: Message | None


class Outbox:
    """The outbox of one results folder. Processes each open their own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def alone(
        self, patience_s: float, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Tell the news while no other process does; wait ``patience_s`` at most for one to end.

        Raises:
            NotifyError: The other process took longer.
        """
        for left in range(int(patience_s / _LOOK_AGAIN_S), -1, -1):
            with self._database.alone(_CLAIM) as mine:
                if mine:
                    yield
                    return
            if left:
                sleep(_LOOK_AGAIN_S)
        raise NotifyError(
            f"{self._database.name}: another process has been sending for {patience_s:g} s; what "
            "is new goes out with the next call"
        )

    def make(self) -> None:
        """Make the tables, if they are not there."""
        with writing_kept(self._database):
            pass

    def plan(self, channel: Channel, topics: Sequence[Topic], now: datetime) -> list[OutboxStep]:
        """Say what is news to a channel, and keep nothing.

        A topic that is missing in ``topics`` is over.
        """
        told = self._told(channel.name)
        causes: defaultdict[str, list[Topic]] = defaultdict(list)
        for topic in topics:
            causes[topic.cause or topic.key].append(topic)
        steps: list[OutboxStep] = []
        for alike in causes.values():
            before = {topic.key: told.pop(topic.key) for topic in alike if topic.key in told}
            if before or any(_is_wanted(channel, topic) for topic in alike):
                steps += _steps(channel.name, alike, before, now)
        steps += [
            _gone(channel.name, key, before, now)
            for key, before in told.items()
            if before.standing.is_bad
        ]
        return steps

    def keep(self, steps: Sequence[OutboxStep], *, silently: bool = False) -> None:
        """Keep what is to be sent, and what channels have heard by it.

        With ``silently`` nothing of it is sent, as if it had been heard.
        """
        with self._database.writing() as connection:
            last = connection.scalar(select(func.max(MESSAGE.c.turn))) or 0
            for turn, step in enumerate(steps, last + 1):
                _put_told(connection, step)
                if step.message is not None and not silently:
                    connection.execute(insert(MESSAGE), [_message_row(step.message, turn)])

    def waiting(self, channel: str) -> list[Message]:
        """List what was not sent yet, in the order in which it was found."""
        wanted = select(MESSAGE).where(MESSAGE.c.channel == channel, MESSAGE.c.sent_at.is_(None))
        with reading_kept(self._database, MESSAGE) as connection:
            if connection is None:
                return []
            return [
                _read_message(row) for row in connection.execute(wanted.order_by(MESSAGE.c.turn))
            ]

    def orphaned(self, channels: Sequence[str]) -> Mapping[str, int]:
        """Count what waits for channels that are no longer named."""
        waits = MESSAGE.c.sent_at.is_(None), MESSAGE.c.channel.not_in(channels)
        counted = select(MESSAGE.c.channel, func.count()).where(*waits).group_by(MESSAGE.c.channel)
        with reading_kept(self._database, MESSAGE) as connection:
            if connection is None:
                return {}
            return {row[0]: row[1] for row in connection.execute(counted)}

    def sent(self, message: Message, now: datetime, place: str = "") -> None:
        """Note that a message got through, and the number of the issue that it went to, if any."""
        with self._database.writing() as connection:
            _change(connection, message, sent_at=now, trouble="")
            if place:
                connection.execute(update(TOLD).where(*_of(message)).values(place=place))

    def failed(self, message: Message, why: str) -> None:
        """Note why a message did not get through; it stays to be sent."""
        with self._database.writing() as connection:
            _change(connection, message, trouble=why)

    def place(self, message: Message) -> str:
        """Give the number of the issue of a message's topic; empty where none is known."""
        with self._database.reading() as connection:
            found: str | None = connection.scalar(select(TOLD.c.place).where(*_of(message)))
        return found or ""

    def _told(self, channel: str) -> dict[str, DeliveryState]:
        with reading_kept(self._database, MESSAGE) as connection:
            if connection is None:
                return {}
            rows = connection.execute(select(TOLD).where(TOLD.c.channel == channel))
            return {row.topic: _read_state(row) for row in rows}


def _change(connection: Connection, message: Message, **change: Any) -> None:
    change["tries"] = MESSAGE.c.tries + 1
    connection.execute(update(MESSAGE).where(MESSAGE.c.id == message.id).values(**change))


def _is_wanted(channel: Channel, topic: Topic) -> bool:
    heard = channel.gaps or not topic.is_gap
    return heard and channel.wants(topic.rank, topic.scenarios, topic.testbed)


def _steps(
    channel: str, topics: Sequence[Topic], told: Mapping[str, DeliveryState], now: datetime
) -> Iterator[OutboxStep]:
    """Tell one cause under one of its topics: that of which there were messages, else the first."""
    news = news_of_cause(topics, told)
    heard = (topic.key for topic in topics if topic.key in told and told[topic.key].messages)
    speaker = next(heard, topics[0].key)
    for topic in topics:
        key, before = topic.key, told.get(topic.key)
        moved = find_news(topic, before) is not None
        speaks = news is not None and key == speaker
        if not speaks and not moved and (before is None or before.standing is topic.standing):
            continue
        messages = (0 if before is None else before.messages) + speaks
        if before is None or moved:
            after = DeliveryState(topic.standing, topic.seen, topic.content(), messages)
        else:
            # It grew quiet, or is over after it was closed: what was heard stays the measure.
            content = topic.content() if speaks else before.content
            after = DeliveryState(topic.standing, before.seen, content, messages)
        yield _step(channel, key, after, news if speaks else None, now)


def _gone(channel: str, key: str, before: DeliveryState, now: datetime) -> OutboxStep:
    if not before.messages:  # another topic of its cause spoke for it
        return _step(channel, key, replace(before, standing=TopicStatus.OVER), None, now)
    news = News.RECOVERED if before.content.area == "gap" else News.GONE
    told = DeliveryState(TopicStatus.OVER, before.seen, before.content, before.messages + 1)
    return _step(channel, key, told, news, now)


def _step(
    channel: str, topic: str, told: DeliveryState, news: News | None, now: datetime
) -> OutboxStep:
    message = None
    if news is not None:
        name = compute_id(channel, topic, news, told.messages, told.seen)
        message = Message(name, channel, topic, told.messages, news, told.content, now)
    return OutboxStep(channel, topic, told, message)


def _of(one: Message | OutboxStep) -> tuple[Any, Any]:
    return TOLD.c.channel == one.channel, TOLD.c.topic == one.topic


def _put_told(connection: Connection, step: OutboxStep) -> None:
    values = {
        "standing": step.told.standing.value,
        "seen": step.told.seen,
        "content": step.told.content.to_json(),
        "messages": step.told.messages,
    }
    if not connection.execute(update(TOLD).where(*_of(step)).values(**values)).rowcount:
        row = {"channel": step.channel, "topic": step.topic, "place": "", **values}
        connection.execute(insert(TOLD), [row])


def _read_state(row: Row[Any]) -> DeliveryState:
    content = STORED_CONTENT.validate_json(row.content)
    return DeliveryState(TopicStatus(row.standing), row.seen, content, row.messages)


def _message_row(message: Message, turn: int) -> dict[str, Any]:
    return {
        "id": message.id,
        "turn": turn,
        "channel": message.channel,
        "topic": message.topic,
        "number": message.number,
        "news": message.news.value,
        "content": message.content.to_json(),
        "made_at": message.made_at,
        "tries": 0,
        "trouble": "",
        "sent_at": None,
    }


def _read_message(row: Row[Any]) -> Message:
    return Message(
        id=row.id,
        channel=row.channel,
        topic=row.topic,
        number=row.number,
        news=News(row.news),
        content=STORED_CONTENT.validate_json(row.content),
        made_at=row.made_at,
        trouble=row.trouble,
    )
