"""What every way out has in common: a message goes in, a receipt comes back, or an error."""

from dataclasses import dataclass
from typing import Protocol

from hybridwatch.errors import NotifyError
from hybridwatch.integrations.notify.message import Message


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of a message that got through.

    Attributes:
        place: Number of the issue that it went to; empty where there are none.
        complaint: What was wrong all the same, in one line; empty for nothing.
    """

    place: str = ""
    complaint: str = ""


class Door(Protocol):
    """A way out."""

    def deliver(self, message: Message, place: str) -> Receipt:
        """Send a message.

        Args:
            message: What to send.
            place: Number of the issue of its topic; empty where none is known.

        Raises:
            UndeliveredError: It did not get through.
        """


class UndeliveredError(NotifyError):
    """A message did not get through; it stays in the outbox.

    Args:
        reason: Why, in one line.
        alone: Whether only this message is refused; otherwise nothing else gets through either.
        again: Whether the next moment may be a better one.
        wait_s: How long the service asked us to wait; 0 where it did not.
    """

    def __init__(
        self, reason: str, *, alone: bool = False, again: bool = False, wait_s: float = 0.0
    ) -> None:
        super().__init__(reason)
        self.alone = alone
        self.again = again
        self.wait_s = wait_s
