"""The outbox, and one round: find what is news to each channel, keep it, send all that waits.

News and what its channel has got by it are written in one transaction: a killed process loses
nothing. Messages are sent in the order in which they were found; a channel that cannot be reached
is left for the next call, and what is refused alone holds up only later messages on its topic.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, Select, func, insert, select, update

from hybridwatch.database.connection import Database, reading_kept, writing_kept
from hybridwatch.database.schema import DELIVERY, MESSAGE
from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.channels import (
    Channel,
    Channels,
    Email,
    Github,
    Gitlab,
    Slack,
    Webhook,
    added_kinds,
    find_kind,
)
from hybridwatch.integrations.notify.clients import (
    ChannelClient,
    MailClient,
    Receipt,
    SlackClient,
    UndeliveredError,
    WebhookClient,
)
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.issues import open_tracker
from hybridwatch.integrations.notify.news import (
    DeliveryState,
    Message,
    News,
    Topic,
    TopicStatus,
    compute_id,
    find_news,
    news_of_cause,
)

_CLAIM: Final = "notify"
_LOOK_AGAIN_S: Final = 0.2
_PAUSES_S: Final = (1.0, 5.0)
"""Before the second and the third try."""
_LONGEST_WAIT_S: Final = 60.0
_PATIENCE_S: Final = 120.0
"""How long to wait while another process sends."""
_STORED_MESSAGE: Final = TypeAdapter(Message)
_STORED_STATE: Final = TypeAdapter(DeliveryState)


@dataclass(frozen=True, slots=True)
class OutboxStep:
    """A topic's new state at a channel, and the message that brings it there, if any."""

    channel: str
    topic: str
    states: DeliveryState
    message: Message | None


class Outbox:
    """The outbox of one results folder. Processes each open their own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def alone(
        self, patience_s: float, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Hold the right to send news; wait ``patience_s`` at most for another process to end."""
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

    def plan(self, channel: Channel, topics: Sequence[Topic], now: datetime) -> list[OutboxStep]:
        """Plan the messages to a channel; stores nothing. A topic that is missing is over."""
        rows = self._rows(select(DELIVERY).where(DELIVERY.c.channel == channel.name))
        states = {row.topic: _STORED_STATE.validate_python(_read_facts(row)) for row in rows}
        causes: defaultdict[str, list[Topic]] = defaultdict(list)
        for topic in topics:
            causes[topic.cause or topic.key].append(topic)
        steps: list[OutboxStep] = []
        for alike in causes.values():
            before = {topic.key: states.pop(topic.key) for topic in alike if topic.key in states}
            if before or any(_is_wanted(channel, topic) for topic in alike):
                steps += _steps(channel.name, alike, before, now)
        steps += [
            _gone(channel.name, key, before, now)
            for key, before in states.items()
            if before.standing.is_bad
        ]
        return steps

    def keep(self, steps: Sequence[OutboxStep], *, silently: bool = False) -> None:
        """Keep what is to be sent, unless ``silently``, and what channels have heard by it."""
        with writing_kept(self._database) as connection:
            last = connection.scalar(select(func.max(MESSAGE.c.turn))) or 0
            for turn, step in enumerate(steps, last + 1):
                _store_state(connection, step)
                if step.message is not None and not silently:
                    connection.execute(insert(MESSAGE), [_message_row(step.message, turn)])

    def waiting(self, channel: str) -> list[Message]:
        """List what was not sent yet, in the order in which it was found."""
        wanted = select(MESSAGE).where(MESSAGE.c.channel == channel, MESSAGE.c.sent_at.is_(None))
        rows = self._rows(wanted.order_by(MESSAGE.c.turn))
        return [_STORED_MESSAGE.validate_python(_read_facts(row)) for row in rows]

    def orphaned(self, channels: Sequence[str]) -> Mapping[str, int]:
        """Count what waits for channels that are no longer named."""
        waits = MESSAGE.c.sent_at.is_(None), MESSAGE.c.channel.not_in(channels)
        counted = select(MESSAGE.c.channel, func.count()).where(*waits).group_by(MESSAGE.c.channel)
        return dict(map(tuple, self._rows(counted)))

    def sent(self, message: Message, now: datetime, place: str = "") -> None:
        """Note that a message got through, and the number of the issue that it went to, if any."""
        with self._database.writing() as connection:
            _change(connection, message, sent_at=now, trouble="")
            if place:
                connection.execute(update(DELIVERY).where(*_of(message)).values(place=place))

    def failed(self, message: Message, why: str) -> None:
        """Note why a message did not get through; it stays to be sent."""
        with self._database.writing() as connection:
            _change(connection, message, trouble=why)

    def place(self, message: Message) -> str:
        """Give the number of the issue of a message's topic; empty where none is known."""
        with self._database.reading() as connection:
            found: str | None = connection.scalar(select(DELIVERY.c.place).where(*_of(message)))
        return found or ""

    def _rows(self, wanted: Select[Any]) -> Sequence[Any]:
        """Read; where there are no tables yet, nothing."""
        with reading_kept(self._database, MESSAGE) as connection:
            return [] if connection is None else connection.execute(wanted).all()


def _change(connection: Connection, message: Message, **change: Any) -> None:
    change["tries"] = MESSAGE.c.tries + 1
    connection.execute(update(MESSAGE).where(MESSAGE.c.id == message.id).values(**change))


def _is_wanted(channel: Channel, topic: Topic) -> bool:
    reached = channel.gaps or not topic.is_gap
    return reached and channel.wants(topic.rank, topic.scenarios, topic.testbed)


def _steps(
    channel: str, topics: Sequence[Topic], states: Mapping[str, DeliveryState], now: datetime
) -> Iterator[OutboxStep]:
    """Tell one cause under one of its topics: that of which there were messages, else the first."""
    news = news_of_cause(topics, states)
    reached = (topic.key for topic in topics if topic.key in states and states[topic.key].messages)
    speaker = next(reached, topics[0].key)
    for topic in topics:
        key, before = topic.key, states.get(topic.key)
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
    over = replace(before, standing=TopicStatus.OVER)
    if not before.messages:  # another topic of its cause spoke for it
        return _step(channel, key, over, None, now)
    news = News.RECOVERED if before.content.area == "gap" else News.GONE
    return _step(channel, key, replace(over, messages=before.messages + 1), news, now)


def _step(
    channel: str, topic: str, states: DeliveryState, news: News | None, now: datetime
) -> OutboxStep:
    message = None
    if news is not None:
        name = compute_id(channel, topic, news, states.messages, states.seen)
        message = Message(name, channel, topic, states.messages, news, states.content, now)
    return OutboxStep(channel, topic, states, message)


def _of(one: Message | OutboxStep) -> tuple[Any, Any]:
    return DELIVERY.c.channel == one.channel, DELIVERY.c.topic == one.topic


def _store_state(connection: Connection, step: OutboxStep) -> None:
    values = {
        "standing": step.states.standing.value,
        "seen": step.states.seen,
        "content": step.states.content.to_json(),
        "messages": step.states.messages,
    }
    if not connection.execute(update(DELIVERY).where(*_of(step)).values(**values)).rowcount:
        row = {"channel": step.channel, "topic": step.topic, "place": "", **values}
        connection.execute(insert(DELIVERY), [row])


def _message_row(message: Message, turn: int) -> dict[str, Any]:
    same = ("id", "channel", "topic", "number", "made_at")
    facts = {name: getattr(message, name) for name in same}
    texts = {"news": message.news.value, "content": message.content.to_json(), "trouble": ""}
    return {**facts, **texts, "turn": turn, "tries": 0, "sent_at": None}


def _read_facts(row: Row[Any]) -> dict[str, Any]:
    return row._asdict() | {"content": json.loads(row.content)}


def open_client(channel: Channel, channels: Channels) -> ChannelClient:
    """Open the client of a channel; ``UndeliveredError`` if a secret is missing."""
    match channel:
        case Slack():
            return SlackClient(channel)
        case Webhook():
            return WebhookClient(channel, channels.source)
        case Email():
            return MailClient(channel)
        case Github() | Gitlab():
            return open_tracker(channel)
        case _:
            kind = added_kinds()[find_kind(channel)]
            client: ChannelClient = kind.open_client(channel, channels.source)
            return client


@dataclass(slots=True)
class Sent:
    """What became of one channel; ``new`` is of a preview, ``troubles`` say what was wrong."""

    channel: str
    kind: str
    sent: list[Message] = field(default_factory=list)
    new: list[Message] = field(default_factory=list)
    waiting: list[Message] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends what waits."""

    outbox: Outbox
    client_of: Callable[[Channel], ChannelClient]
    sleep: Callable[[float], None] = time.sleep

    def send(self, channel: Channel) -> Sent:
        """Send everything that waits for a channel, as far as it gets through."""
        found = Sent(channel.name, find_kind(channel))
        found.waiting = self.outbox.waiting(channel.name)
        if found.waiting:
            try:
                self._send_all(self.client_of(channel), found)
            except UndeliveredError as error:
                found.troubles.append(str(error))
        return found

    def _send_all(self, client: ChannelClient, found: Sent) -> None:
        held: set[str] = set()
        for message in list(found.waiting):
            if message.topic in held:
                continue
            try:
                receipt = self._deliver(client, message)
            except UndeliveredError as error:
                self.outbox.failed(message, str(error))
                if not error.alone:
                    raise
                held.add(message.topic)
                found.troubles.append(f"{message.headline}: {error}")
                continue
            self.outbox.sent(message, datetime.now(UTC), receipt.place)
            found.waiting.remove(message)
            found.sent.append(message)
            if receipt.complaint:
                found.troubles.append(receipt.complaint)

    def _deliver(self, client: ChannelClient, message: Message) -> Receipt:
        """Send a message, up to three times while the service is only busy."""
        for pause in _PAUSES_S:
            try:
                return client.deliver(message, self.outbox.place(message))
            except UndeliveredError as error:
                if not error.again or error.wait_s > _LONGEST_WAIT_S:
                    raise
                self.sleep(max(pause, error.wait_s))
        return client.deliver(message, self.outbox.place(message))


def chosen_channels(channels: Channels, names: Sequence[str]) -> tuple[Channel, ...]:
    """Choose channels by name; all without any."""
    known = {channel.name: channel for channel in channels.all}
    for name in names:
        if name not in known:
            raise NotifyError(
                f"{channels.path}: expected one of the channels {', '.join(known)}, found {name!r}"
            )
    return tuple(known[name] for name in dict.fromkeys(names)) if names else channels.all


def preview(outbox: Outbox, channels: Sequence[Channel], place: TopicPlace) -> list[Sent]:
    """Say what would be sent; keeps and sends nothing."""
    now = datetime.now(UTC)
    topics = gather_topics(place, now)
    return [
        Sent(
            channel.name,
            find_kind(channel),
            new=_messages(outbox.plan(channel, topics, now)),
            waiting=outbox.waiting(channel.name),
        )
        for channel in channels
    ]


def tell(
    sender: Sender, channels: Sequence[Channel], place_of: Callable[[], TopicPlace]
) -> list[Sent]:
    """Send what changed since each channel last heard, and what did not get through before.

    ``place_of`` says where to look, once no other process sends: what that one found is known.
    """
    with sender.outbox.alone(_PATIENCE_S):
        _find(sender.outbox, channels, place_of(), silently=False)
        return [sender.send(channel) for channel in channels]


def skip(outbox: Outbox, channels: Sequence[Channel], place_of: Callable[[], TopicPlace]) -> int:
    """Mark everything that is new as read, and send nothing of it; gives how much that is."""
    with outbox.alone(_PATIENCE_S):
        return _find(outbox, channels, place_of(), silently=True)


def _find(outbox: Outbox, channels: Sequence[Channel], place: TopicPlace, *, silently: bool) -> int:
    now = datetime.now(UTC)
    topics = gather_topics(place, now)
    steps = [step for channel in channels for step in outbox.plan(channel, topics, now)]
    outbox.keep(steps, silently=silently)
    return len(_messages(steps))


def _messages(steps: Sequence[OutboxStep]) -> list[Message]:
    return [step.message for step in steps if step.message is not None]
