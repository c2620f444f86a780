"""Sends what the outbox has, channel by channel, in the order in which it was found.

A channel that cannot be reached is left for the next call: nobody waits for it thirty times. What
is refused alone holds up only the later messages about the same topic, so that no end is told
before its beginning.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hybridwatch.integrations.notify.channels import Channel, kind_of
from hybridwatch.integrations.notify.door import Door, Receipt, UndeliveredError
from hybridwatch.integrations.notify.message import Message
from hybridwatch.integrations.notify.outbox import Outbox

_PAUSES_S: Final = (1.0, 5.0)
"""Before the second and the third try."""
_LONGEST_WAIT_S: Final = 60.0


@dataclass(slots=True)
class Sent:
    """What became of one channel.

    Attributes:
        channel: Its name.
        kind: Its kind.
        sent: What got through.
        waiting: What did not, and is kept.
        troubles: Why, and what else was wrong, a line each.
    """

    channel: str
    kind: str
    sent: list[Message] = field(default_factory=list)
    waiting: list[Message] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class Sender:
    """Sends what waits.

    Args:
        outbox: Where it waits.
        door_of: Opens the way out of a channel.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        outbox: Outbox,
        door_of: Callable[[Channel], Door],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._outbox = outbox
        self._door_of = door_of
        self._sleep = sleep

    def send(self, channel: Channel) -> Sent:
        """Send everything that waits for a channel, as far as it gets through."""
        found = Sent(channel.name, kind_of(channel))
        found.waiting = self._outbox.waiting(channel.name)
        if found.waiting:
            try:
                self._send_all(self._door_of(channel), found)
            except UndeliveredError as error:
                found.troubles.append(str(error))
        return found

    def _send_all(self, door: Door, found: Sent) -> None:
        held: set[str] = set()
        for message in list(found.waiting):
            if message.topic in held:
                continue
            try:
                receipt = self._deliver(door, message)
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

    def _deliver(self, door: Door, message: Message) -> Receipt:
        """Send a message, up to three times while the service is only busy."""
        for pause in _PAUSES_S:
            try:
                return door.deliver(message, self._outbox.place(message))
            except UndeliveredError as error:
                if not error.again or error.wait_s > _LONGEST_WAIT_S:
                    raise
                self._sleep(max(pause, error.wait_s))
        return door.deliver(message, self._outbox.place(message))
