"""Sends what the outbox has, channel by channel, in the order in which it was found.

A channel that cannot be reached is left for the next call: no round waits for it thirty times. What
is refused alone holds up only the later messages about the same topic, so that no end is sent
before its beginning.

One round: find what is news to each channel, keep it, and send everything that waits.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.channels import Channel, Channels, find_kind
from hybridwatch.integrations.notify.client import ChannelClient, Receipt, UndeliveredError
from hybridwatch.integrations.notify.gather import TopicPlace, gather_topics
from hybridwatch.integrations.notify.message import Message
from hybridwatch.integrations.notify.outbox import Outbox, OutboxStep

_PAUSES_S: Final = (1.0, 5.0)
"""Before the second and the third try."""
_LONGEST_WAIT_S: Final = 60.0
_PATIENCE_S: Final = 120.0
"""How long to wait while another process sends."""


@dataclass(slots=True)
class Sent:
    """What became of one channel, or would.

    Attributes:
        new: What would be sent and was not found before; of a preview alone.
        waiting: What did not get through, and is kept.
        troubles: Why, and what else was wrong, a line each.
    """

    channel: str
    kind: str
    sent: list[Message] = field(default_factory=list)
    new: list[Message] = field(default_factory=list)
    waiting: list[Message] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class Sender:
    """Sends what waits."""

    def __init__(
        self,
        outbox: Outbox,
        door_of: Callable[[Channel], ChannelClient],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._outbox = outbox
        self._door_of = door_of
        self._sleep = sleep

    def send(self, channel: Channel) -> Sent:
        """Send everything that waits for a channel, as far as it gets through."""
        found = Sent(channel.name, find_kind(channel))
        found.waiting = self._outbox.waiting(channel.name)
        if found.waiting:
            try:
                self._send_all(self._door_of(channel), found)
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
                self._outbox.failed(message, str(error))
                if not error.alone:
                    raise
                held.add(message.topic)
                found.troubles.append(f"{message.headline}: {error}")
                continue
            self._outbox.sent(message, datetime.now(UTC), receipt.place)
            found.waiting.remove(message)
            found.sent.append(message)
            if receipt.complaint:
                found.troubles.append(receipt.complaint)

    def _deliver(self, client: ChannelClient, message: Message) -> Receipt:
        """Send a message, up to three times while the service is only busy."""
        for pause in _PAUSES_S:
            try:
                return client.deliver(message, self._outbox.place(message))
            except UndeliveredError as error:
                if not error.again or error.wait_s > _LONGEST_WAIT_S:
                    raise
                self._sleep(max(pause, error.wait_s))
        return client.deliver(message, self._outbox.place(message))


def chosen_channels(channels: Channels, names: Sequence[str]) -> tuple[Channel, ...]:
    """Choose channels by name; all without any.

    Raises:
        NotifyError: A name is no channel's.
    """
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
    outbox: Outbox, sender: Sender, channels: Sequence[Channel], place_of: Callable[[], TopicPlace]
) -> list[Sent]:
    """Send what changed since each channel last heard, and what did not get through before.

    ``place_of`` says where to look, once no other process sends: what that one found is known.

    Raises:
        NotifyError: Another process has been sending all the time, or the folder has no records.
    """
    with outbox.alone(_PATIENCE_S):
        _find(outbox, channels, place_of(), silently=False)
        return [sender.send(channel) for channel in channels]


def skip(outbox: Outbox, channels: Sequence[Channel], place_of: Callable[[], TopicPlace]) -> int:
    """Take everything that is new for heard, and send nothing of it; gives how much that is."""
    with outbox.alone(_PATIENCE_S):
        return _find(outbox, channels, place_of(), silently=True)


def _find(outbox: Outbox, channels: Sequence[Channel], place: TopicPlace, *, silently: bool) -> int:
    now = datetime.now(UTC)
    topics = gather_topics(place, now)
    outbox.make()
    steps = [step for channel in channels for step in outbox.plan(channel, topics, now)]
    outbox.keep(steps, silently=silently)
    return len(_messages(steps))


def _messages(steps: Sequence[OutboxStep]) -> list[Message]:
    return [step.message for step in steps if step.message is not None]
