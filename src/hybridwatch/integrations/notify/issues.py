"""One issue for each alert, on GitHub or GitLab: opened, told what is new, closed, opened again.

An issue is known by its number, which the database keeps, and where that is lost by a hidden mark
in its text, among those with our label that we wrote. Each message leaves its own mark, in the text
or in a comment, so that one whose answer was lost is not sent twice.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from hybridwatch.integrations.notify.client import Receipt
from hybridwatch.integrations.notify.message import Message, News
from hybridwatch.reports.escape import as_item, escape

_TITLE: Final = 200
_TEXT: Final = 1000


@dataclass(frozen=True, slots=True)
class WantedIssue:
    """How an issue shall be.

    Attributes:
        body: Markdown, with the marks.
        is_done: Of a closed one, whether the trouble is over, and not only accepted.
    """

    title: str
    body: str
    is_open: bool
    is_done: bool


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue that is there.

    Attributes:
        complaint: What was wrong with it when it was made; empty for nothing.
    """

    number: str
    body: str
    complaint: str = ""


class Tracker(Protocol):
    """The issues of one repository, as far as we write them."""

    def find(self, is_marked: Callable[[str], bool]) -> list[Issue]:
        """List our issues with a mark in their text, the oldest first."""

    def get(self, number: str) -> Issue | None:
        """Give an issue of ours; ``None`` if it is gone, or of another author."""

    def create(self, wanted: WantedIssue) -> Issue:
        """Make an issue; sent once, whatever becomes of the answer."""

    def change(self, number: str, wanted: WantedIssue) -> None:
        """Make an issue as it shall be, in one request."""

    def comments(self, number: str) -> Iterable[str]:
        """Give the texts of our comments."""

    def comment(self, number: str, text: str) -> None:
        """Add a comment."""


class IssueClient:
    """The issues of one repository."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def deliver(self, message: Message, place: str) -> Receipt:
        """Make the issue of a message's topic say it."""
        issue = self._found(message, place)
        if issue is None:
            if message.news.is_end:
                return Receipt()  # it was removed: there is nothing to close
            issue = self._created(message)
        if _mark(message) not in issue.body:
            if not any(_mark(message) in text for text in self._tracker.comments(issue.number)):
                self._tracker.comment(issue.number, render_comment(message))
            self._tracker.change(issue.number, build_wanted_issue(message))
        return Receipt(issue.number, issue.complaint)

    def _found(self, message: Message, place: str) -> Issue | None:
        known = self._tracker.get(place) if place else None
        # The file may name another repository by now, where the number is another topic's.
        if known is not None and (_TOPIC not in known.body or _topic(message) in known.body):
            return known
        return next(iter(self._ours(message)), None)

    def _created(self, message: Message) -> Issue:
        made = self._tracker.create(build_wanted_issue(message))
        # One that was asked for earlier may have come into being after all.
        first, *others = self._ours(message) or [made]
        for other in others:
            text = f"The same as #{first.number}, which stays.\n\n{_KEEPER}"
            closed = WantedIssue(
                f"Duplicate of #{first.number}", text, is_open=False, is_done=False
            )
            self._tracker.change(other.number, closed)
        return first if first.number != made.number else made

    def _ours(self, message: Message) -> list[Issue]:
        return self._tracker.find(lambda body: _topic(message) in body)


_TOPIC: Final = "<!-- hybridwatch-topic: "
_KEEPER: Final = "<sub>`hybridwatch notify` keeps this issue</sub>"


def build_wanted_issue(message: Message) -> WantedIssue:
    """Say how the issue of a topic shall be after a message."""
    marks = f"{_topic(message)}\n{_mark(message)}\n"
    return WantedIssue(
        title=message.headline[:_TITLE],
        body="\n\n".join([*_paragraphs(message), _KEEPER, marks]),
        is_open=not message.news.is_end,
        is_done=message.news not in {News.CLOSED, News.NOT_REPEATED},
    )


def render_comment(message: Message) -> str:
    """Write what is new about a topic as a comment."""
    return "\n\n".join([*_paragraphs(message), _mark(message) + "\n"])


def _topic(message: Message) -> str:
    return f"{_TOPIC}{message.topic} -->"


def _mark(message: Message) -> str:
    return f"<!-- hybridwatch-news: {message.id} -->"


def _paragraphs(message: Message) -> Iterator[str]:
    # No line begins with a text from a record: on GitLab a line that begins with / is a command.
    yield f"**{escape(message.headline, _TEXT)}**"
    if message.detail:
        yield f"By how much: {escape(message.detail, _TEXT)}"
    yield "\n".join(f"- {name}: {escape(value, _TEXT)}" for name, value in message.facts())
    if lines := message.lines():
        yield "\n".join(map(as_item, lines))
    if message.content.link:
        yield f"[Open in the dashboard](<{message.content.link}>)"
