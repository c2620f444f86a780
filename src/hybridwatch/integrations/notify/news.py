"""Decides what is news to a channel, and writes the message, as facts and as text.

A channel gets a message when a topic opens, grows worse, comes back and ends; what it says is fixed
when that is found. Texts come from records: what shows them as Markdown or HTML escapes them.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from hybridwatch.analysis.alerts import Since
from hybridwatch.analysis.policy import Action
from hybridwatch.reports.escape import one_line

_ID_DIGITS: Final = 32
_SHOWN: Final = 30
"""Metrics, or scenarios that were not measured, which a message names."""


class News(Enum):
    """What happened; the values are stored and sent."""

    OPENED = "opened"
    WORSE = "worse"
    BACK = "back"
    """It was shown good, or closed, and is bad again."""
    AGAIN = "again"
    """A mute ended, or a person opened it again."""
    BISECTED = "bisected"
    """A search that it started has an answer."""
    CLOSED = "closed"
    """A person said that nothing is to be done."""
    RECOVERED = "recovered"
    NOT_REPEATED = "not-repeated"
    """One run alone was bad, and the next is not: whether anything was wrong is not known."""
    GONE = "gone"
    """Nothing says any more that it is bad: records or the policy changed."""

    @property
    def is_end(self) -> bool:
        """Whether nothing has to be done any more."""
        return self in {News.CLOSED, News.RECOVERED, News.NOT_REPEATED, News.GONE}


_LEADS: Final[Mapping[News, str]] = {
    News.OPENED: "",
    News.WORSE: "Worse now",
    News.BACK: "Back",
    News.AGAIN: "Open again",
    News.BISECTED: "Bisected",
    News.CLOSED: "Closed",
    News.RECOVERED: "Recovered",
    News.NOT_REPEATED: "Not repeated",
    News.GONE: "No longer counted",
}
_WHICH: Final = frozenset({"Build", "Testbed"})
_WHY: Final[Mapping[News, str]] = {
    News.GONE: "The records or the policy changed, and nothing says any more that it is bad.",
    News.NOT_REPEATED: "One run was bad and the next is not. Nothing was mended that we know "
    "of: it may have been the luck of that engine's start.",
}
"""What there is to say instead of by how much."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A metric that shows the trouble; ``change`` is ``effect`` in words, ``-`` without one."""

    metric: str
    statistic: str
    verdict: str
    effect: float | None
    change: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says; a text is empty where there is none, or several.

    Attributes:
        what: What happened: ``Slower``; with ``members``, also in how many places.
        rank: What the gate does about it: ``block`` or ``warn``.
        area: What is affected (``analysis.cause.Area``); ``gap`` for what was not measured.
        since: When the run began that opened it.
        metrics: What shows it, the one to name first.
        missing: Of a gap: each scenario with its reason.
        members: Where else than in one place a cause shows: each place with its change.
        searched: What a search of it found, in a line; empty where none is over.
    """

    what: str
    detail: str
    scenario: str
    testbed: str
    rank: str
    area: str
    baseline: str = ""
    contender: str = ""
    run: str = ""
    since: str = ""
    metrics: tuple[MessagePart, ...] = ()
    missing: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    note: str = ""
    link: str = ""
    searched: str = ""

    def to_json(self) -> str:
        """Write it for the database; pydantic reads it back."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Message:
    """One piece of news for one channel, under an id that stays however often it is sent.

    It is the ``number``-th about its ``topic``, from 1; ``trouble`` says why it was not sent so
    far.
    """

    id: str
    channel: str
    topic: str
    number: int
    news: News
    content: Content
    made_at: datetime
    trouble: str = field(default="", compare=False)

    @property
    def headline(self) -> str:
        """Say in one plain line what happened, and where."""
        content = self.content
        place = content.scenario or content.testbed
        what = f"{content.what} in {place}" if content.scenario else f"{content.what} on {place}"
        what = what if place and not content.members else content.what
        lead = _LEADS[self.news]
        return one_line(f"{lead}: {what[:1].lower()}{what[1:]}" if lead else what)

    @property
    def detail(self) -> str:
        """Say the rest in one line; may be empty."""
        return one_line(_WHY.get(self.news, self.content.detail))

    @property
    def line(self) -> str:
        """Say what happened, by how much, on which machine and of which build."""
        lines = [f"{name.lower()} {value}" for name, value in self.facts() if name in _WHICH]
        text = f"{self.headline}: {self.detail}" if self.detail else self.headline
        return f"{text} ({', '.join(lines)})" if lines else text

    def facts(self) -> Iterator[tuple[str, str]]:
        """Give what else a reader wants to know, each with its name."""
        content = self.content
        if content.contender:
            against = f" against {content.baseline}" if content.baseline else ""
            yield "Build", one_line(f"{content.contender}{against}")
        if content.testbed:
            yield "Testbed", one_line(content.testbed)
        if not self.news.is_end:
            yield "By the gate's policy it", "blocks" if content.rank == "block" else "warns"
        if content.note:
            yield "Closed as", one_line(content.note)
        if content.since:
            yield "Bad since", one_line(content.since)
        if content.run:
            yield "Newest bad run", one_line(content.run)
        if content.searched:
            yield "Bisected", one_line(content.searched)

    def lines(self) -> list[str]:
        """Name the places or metrics that show it, or what was not measured, a line each."""
        content = self.content
        lines = list(content.members) or [
            f"{one.metric} {one.statistic}: {one.verdict}, {one.change}" for one in content.metrics
        ]
        lines = [one_line(line).removesuffix(", -") for line in lines] + [
            one_line(line) for line in content.missing
        ]
        more = len(lines) - _SHOWN
        return [*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]

    def to_json(self) -> dict[str, Any]:
        """Give everything as JSON (``docs/json.md``)."""
        return {
            "id": self.id,
            "channel": self.channel,
            "topic": self.topic,
            "number": self.number,
            "news": self.news.value,
            "found_at": self.made_at.astimezone(UTC).isoformat(),
            "headline": self.headline,
            **asdict(self.content),
        }


def compute_id(channel: str, topic: str, news: News, number: int, seen: str) -> str:
    """Name a message: the same news has the same name, though the database was lost meanwhile."""
    text = json.dumps([channel, topic, news.value, number, seen])
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


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
        seen: What is to be seen of it now, as text that ``since`` takes, to say what became of it.
        content: Gives everything about its cause; may read a record.
        cause: The same for all that is in one message; empty for what stands alone.
        searched: As in ``content``.
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
    searched: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """How a topic stood when a channel last heard of it, or when it grew quiet since."""

    standing: TopicStatus
    seen: str
    content: Content
    messages: int


_MOVED = {Since.WORSE: News.WORSE, Since.BACK: News.BACK}


def find_news(topic: Topic, before: DeliveryState | None) -> News | None:
    """Say what of a topic is news to a channel that last heard of it ``before``, if anything."""
    if before is None:
        return News.OPENED if topic.standing is TopicStatus.OPEN else None
    match topic.standing:
        case TopicStatus.OPEN if not before.standing.is_bad:
            return News.BACK
        case TopicStatus.OPEN:
            other = News.AGAIN if before.standing is TopicStatus.QUIET else None
            if topic.searched and topic.searched != before.content.searched:
                other = other or News.BISECTED
            return _MOVED.get(topic.since(before.seen), other)
        case TopicStatus.CLOSED if before.standing.is_bad:
            return News.CLOSED
        case TopicStatus.OVER if before.standing.is_bad:
            return News.RECOVERED
        case TopicStatus.NOT_REPEATED if before.standing.is_bad:
            return News.NOT_REPEATED
        case _:
            return None


def news_of_cause(topics: Sequence[Topic], before: Mapping[str, DeliveryState]) -> News | None:
    """Say what of the topics of one cause is news to a channel; of one topic as ``find_news``.

    That another place shows it is no news, unless it blocks what only warned; and it ends when it
    has ended everywhere. ``before`` is by the keys of topics.
    """
    found = {topic.key: find_news(topic, before.get(topic.key)) for topic in topics}
    standings = {topic.standing for topic in topics}
    if TopicStatus.OPEN not in standings:
        ended = TopicStatus.QUIET not in standings
        return next((news for news in News if ended and news in found.values()), None)
    known = [before[key] for key in found if key in before and before[key].standing.is_bad]
    if not known:
        return News.OPENED if News.OPENED in found.values() else News.BACK
    joined = (topic for topic in topics if found[topic.key] is News.OPENED)
    if any(one.rank is Action.BLOCK for one in joined) and not any(
        one.content.rank == Action.BLOCK.value for one in known
    ):
        return News.WORSE
    moved = (News.BACK, News.WORSE, News.AGAIN, News.BISECTED)
    return next((news for news in moved if news in found.values()), None)
