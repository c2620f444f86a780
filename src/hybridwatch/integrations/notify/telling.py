"""One round: find what is news to each channel, keep it, and send everything that waits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.channels import Channel, Channels, kind_of
from hybridwatch.integrations.notify.gather import Place, topics_of
from hybridwatch.integrations.notify.message import Message
from hybridwatch.integrations.notify.outbox import Outbox, Step
from hybridwatch.integrations.notify.sending import Sender, Sent

_PATIENCE_S: Final = 120.0
"""How long to wait while another process sends."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a channel would be sent.

    Attributes:
        channel: Its name.
        kind: Its kind.
        new: What nobody found before.
        waiting: What did not get through so far.
    """

    channel: str
    kind: str
    new: tuple[Message, ...]
    waiting: tuple[Message, ...]


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


def preview(outbox: Outbox, channels: Sequence[Channel], place: Place) -> list[Preview]:
    """Say what would be sent; keeps and sends nothing."""
    now = datetime.now(UTC)
    topics = topics_of(place, now)
    return [
        Preview(
            channel.name,
            kind_of(channel),
            tuple(_messages(outbox.plan(channel, topics, now))),
            tuple(outbox.waiting(channel.name)),
        )
        for channel in channels
    ]


def tell(
    outbox: Outbox, sender: Sender, channels: Sequence[Channel], place_of: Callable[[], Place]
) -> list[Sent]:
    """Send what changed since each channel last heard, and what did not get through before.

    Args:
        outbox: Keeps it until it is sent.
        sender: Sends it.
        channels: To whom.
        place_of: Says where to look, once nobody else sends: what another process found is known.

    Raises:
        NotifyError: Another process has been sending all the time, or the folder has no records.
    """
    with outbox.alone(_PATIENCE_S):
        _find(outbox, channels, place_of(), silently=False)
        return [sender.send(channel) for channel in channels]


def skip(outbox: Outbox, channels: Sequence[Channel], place_of: Callable[[], Place]) -> int:
    """Take everything that is new for heard, and send nothing of it; gives how much that is."""
    with outbox.alone(_PATIENCE_S):
        return _find(outbox, channels, place_of(), silently=True)


def _find(outbox: Outbox, channels: Sequence[Channel], place: Place, *, silently: bool) -> int:
    now = datetime.now(UTC)
    topics = topics_of(place, now)
    outbox.make()
    steps = [step for channel in channels for step in outbox.plan(channel, topics, now)]
    outbox.keep(steps, silently=silently)
    return len(_messages(steps))


def _messages(steps: Sequence[Step]) -> list[Message]:
    return [step.message for step in steps if step.message is not None]
