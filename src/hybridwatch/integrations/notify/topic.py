"""What is news to a channel: how a topic stands, held against how it stood when it last heard.

Pure. A topic is one alert, or everything that one machine did not measure; alerts of one cause are
in one message. A channel gets a message when a topic opens, grows worse, comes back and ends; one
that got the beginning gets the end. What was acknowledged or muted is kept quiet, as the dashboard
does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from hybridwatch.analysis.alerts import Since
from hybridwatch.analysis.policy import Action
from hybridwatch.integrations.notify.message import Content, News


class TopicStatus(Enum):
    """How a topic stands; the values are stored."""

    OPEN = "open"
    QUIET = "quiet"
    """Bad, and acknowledged or muted."""
    CLOSED = "closed"
    """A person said that nothing is to be done."""
    OVER = "over"
    """Shown good, or no longer counted."""
    NOT_REPEATED = "not repeated"
    """One run alone was bad, and the next is not."""

    @property
    def is_bad(self) -> bool:
        """Whether the trouble is there."""
        return self in {TopicStatus.OPEN, TopicStatus.QUIET}


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that news can be about, as it stands now.

    Attributes:
        key: 32 hexadecimal digits; equal for the same thing, on every machine.
        testbed: On which machine; empty for no certain one.
        is_gap: Whether it is something that was not measured.
        seen: What is to be seen of it now, as text that ``since`` takes.
        since: What became of it since ``seen`` was that.
        content: Gives everything about its cause; may read a record.
        cause: The same for all that is in one message; empty for what stands alone.
    """

    key: str
    standing: TopicStatus
    rank: Action
    scenarios: tuple[str, ...]
    testbed: str
    is_gap: bool
    seen: str
    since: Callable[[str], Since]
    content: Callable[[], Content]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """How a topic stood when a channel last heard of it, or when it grew quiet since.

    Attributes:
        seen: What was to be seen when the channel last heard.
        messages: How many messages there were about it; none where those about another topic of its
            cause reported it.
    """

    standing: TopicStatus
    seen: str
    content: Content
    messages: int


_MOVED = {Since.WORSE: News.WORSE, Since.BACK: News.BACK}


def find_news(topic: Topic, told: DeliveryState | None) -> News | None:
    """Say what of a topic is news to a channel; ``None`` for nothing.

    ``told`` is what the channel heard of it; ``None`` for nothing yet.
    """
    if told is None:
        return News.OPENED if topic.standing is TopicStatus.OPEN else None
    match topic.standing:
        case TopicStatus.OPEN if not told.standing.is_bad:
            return News.BACK
        case TopicStatus.OPEN:
            again = News.AGAIN if told.standing is TopicStatus.QUIET else None
            return _MOVED.get(topic.since(told.seen), again)
        case TopicStatus.CLOSED if told.standing.is_bad:
            return News.CLOSED
        case TopicStatus.OVER if told.standing.is_bad:
            return News.RECOVERED
        case TopicStatus.NOT_REPEATED if told.standing.is_bad:
            return News.NOT_REPEATED
        case _:
            return None


def news_of_cause(topics: Sequence[Topic], told: Mapping[str, DeliveryState]) -> News | None:
    """Say what of the topics of one cause is news to a channel; of one topic as ``find_news``.

    That another place shows it is no news, unless it blocks what only warned; and it ends when it
    has ended everywhere.

    ``told`` is what the channel heard of each, by its key.
    """
    found = {topic.key: find_news(topic, told.get(topic.key)) for topic in topics}
    standings = {topic.standing for topic in topics}
    if TopicStatus.OPEN not in standings:
        ended = TopicStatus.QUIET not in standings
        return next((news for news in News if ended and news in found.values()), None)
    known = [told[key] for key in found if key in told and told[key].standing.is_bad]
    if not known:
        return News.OPENED if News.OPENED in found.values() else News.BACK
    joined = (topic for topic in topics if found[topic.key] is News.OPENED)
    if any(one.rank is Action.BLOCK for one in joined) and not any(
        one.content.rank == Action.BLOCK.value for one in known
    ):
        return News.WORSE
    moved = (news for news in (News.BACK, News.WORSE, News.AGAIN) if news in found.values())
    return next(moved, None)
