"""What is news to a channel: how a topic stands, held against how it stood when it last heard.

Pure. A topic is one alert, which has one cause, or everything that one machine did not measure. A
channel hears when a topic opens, grows worse, comes back and ends; whoever heard of the beginning
hears of the end. What somebody has acknowledged or muted is kept quiet, as the dashboard does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from hybridwatch.analysis.policy import Action
from hybridwatch.notify.message import Content, News
from hybridwatch.triage import Since


class Standing(Enum):
    """How a topic stands; the values are stored."""

    OPEN = "open"
    QUIET = "quiet"
    """Bad, and acknowledged or muted."""
    CLOSED = "closed"
    """Somebody said that nothing is to be done."""
    OVER = "over"
    """Shown good, or no longer counted."""

    @property
    def is_bad(self) -> bool:
        """Whether the trouble is there."""
        return self in {Standing.OPEN, Standing.QUIET}


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that news can be about, as it stands now.

    Attributes:
        key: 32 hexadecimal digits; equal for the same thing, on every machine.
        standing: How it stands.
        rank: What the gate does about it.
        scenarios: In which it shows.
        testbed: On which machine; empty for no certain one.
        is_gap: Whether it is something that was not measured.
        seen: What is to be seen of it now, as text that ``since`` takes.
        since: What became of it since ``seen`` was that.
        content: Tells everything about it; may read a record.
    """

    key: str
    standing: Standing
    rank: Action
    scenarios: tuple[str, ...]
    testbed: str
    is_gap: bool
    seen: str
    since: Callable[[str], Since]
    content: Callable[[], Content]


@dataclass(frozen=True, slots=True)
class Told:
    """How a topic stood when a channel last heard of it, or when it grew quiet since.

    Attributes:
        standing: How it stood.
        seen: What was to be seen when the channel last heard.
        content: What it heard.
        messages: How many messages there were about it.
    """

    standing: Standing
    seen: str
    content: Content
    messages: int


_MOVED = {Since.WORSE: News.WORSE, Since.BACK: News.BACK}


def news_of(topic: Topic, told: Told | None) -> News | None:
    """Say what of a topic is news to a channel; ``None`` for nothing.

    Args:
        topic: As it stands.
        told: What the channel heard of it; ``None`` for nothing yet.
    """
    if told is None:
        return News.OPENED if topic.standing is Standing.OPEN else None
    match topic.standing:
        case Standing.OPEN if not told.standing.is_bad:
            return News.BACK
        case Standing.OPEN:
            again = News.AGAIN if told.standing is Standing.QUIET else None
            return _MOVED.get(topic.since(told.seen), again)
        case Standing.CLOSED if told.standing.is_bad:
            return News.CLOSED
        case Standing.OVER if told.standing.is_bad:
            return News.RECOVERED
        case _:
            return None
