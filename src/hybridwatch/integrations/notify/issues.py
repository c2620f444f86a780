"""One issue for each alert, on GitHub or GitLab: opened, commented, closed and reopened.

It is known by its number, else by a hidden mark; each message leaves one, so none is sent twice.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol
from urllib.parse import quote

from github import GithubException
from github.Issue import Issue as GithubIssue

from hybridwatch.errors import GithubError
from hybridwatch.integrations.github.client import (
    GitHubClient,
    RepositoryAccess,
    find_author,
    plain,
)
from hybridwatch.integrations.notify.channels import Github, Gitlab
from hybridwatch.integrations.notify.clients import Http, Receipt, UndeliveredError, read_secret
from hybridwatch.integrations.notify.news import Message, News
from hybridwatch.reports.escape import as_item, as_title, escape

_TITLE: Final = 200
_TEXT: Final = 1000
_TOPIC: Final = "<!-- hybridwatch-topic: "
_KEEPER: Final = "<sub>`hybridwatch notify` keeps this issue</sub>"
_TOKEN: Final = (r"[!-~]+", "a token")
_HINTS: Final = {
    401: "the token is not valid",
    403: "the token may not do this: it takes the permission `issues: write`",
    404: "there is no such repository, or the token may not see it",
    410: "issues are switched off in this repository",
    422: "GitHub does not take this content",
}
_GONE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({400, 422})
"""Of one message; any other answer is about everything that we ask."""
_LONGEST_WAIT_S: Final = 60.0
_PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class WantedIssue:
    """How an issue shall be; done is a closed one whose trouble is over, and not only accepted."""

    title: str
    body: str
    is_open: bool
    is_done: bool


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue that is there; ``complaint`` is what was wrong when it was made."""

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
        # One that was requested earlier may have come into being after all.
        first, *others = self._ours(message) or [made]
        for other in others:
            title = f"Duplicate of #{first.number}"
            text = f"The same as #{first.number}, which stays.\n\n{_KEEPER}"
            self._tracker.change(
                other.number, WantedIssue(title, text, is_open=False, is_done=False)
            )
        return first if first.number != made.number else made

    def _ours(self, message: Message) -> list[Issue]:
        return self._tracker.find(lambda body: _topic(message) in body)


def build_wanted_issue(message: Message) -> WantedIssue:
    """Say how the issue of a topic shall be after a message."""
    marks = f"{_topic(message)}\n{_mark(message)}\n"
    return WantedIssue(
        title=as_title(message.headline)[:_TITLE],
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


class _GithubTracker:
    """The issues of a repository on GitHub that have our label and that our token wrote."""

    def __init__(self, channel: Github) -> None:
        token = read_secret(channel.token_from, *_TOKEN)
        access = RepositoryAccess(token, channel.api.rstrip("/"), _LONGEST_WAIT_S)
        self._client = GitHubClient(access, channel.repository, _HINTS)
        self._repository = self._client.github.get_repo(channel.repository)
        self._label = channel.label

    def find(self, is_marked: Callable[[str], bool]) -> list[Issue]:
        with self._asking("list the issues of"):
            found = self._repository.get_issues(
                state="all", labels=[self._label], sort="created", direction="asc"
            )
            ours = (one for one in found if find_author(one) == self._me)
            return [_read_github(one) for one in ours if is_marked(one.body or "")]

    def get(self, number: str) -> Issue | None:
        with self._asking(f"read issue {number} of"):
            try:
                found = self._repository.get_issue(int(number))
                return _read_github(found) if find_author(found) == self._me else None
            except GithubException as error:
                if error.status in _GONE:
                    return None
                raise

    def create(self, wanted: WantedIssue) -> Issue:
        with self._asking("make an issue in"):
            made = self._repository.create_issue(
                wanted.title, body=wanted.body, labels=[self._label]
            )
            kept = self._label in {label.name for label in made.labels}
            complaint = (
                f"GitHub left the label {self._label} out, by which an issue is found again: the "
                "token needs `issues: write`, or the right to push"
            )
            return _read_github(made, "" if kept else complaint)

    def change(self, number: str, wanted: WantedIssue) -> None:
        ended = "completed" if wanted.is_done else "not_planned"
        with self._asking(f"change issue {number} of"):
            self._repository.get_issue(int(number)).edit(
                title=wanted.title,
                body=wanted.body,
                state="open" if wanted.is_open else "closed",
                state_reason="reopened" if wanted.is_open else ended,
            )

    def comments(self, number: str) -> list[str]:
        with self._asking(f"read the comments on issue {number} of"):
            found = self._repository.get_issue(int(number)).get_comments()
            return [plain(comment.body) for comment in found if find_author(comment) == self._me]

    def comment(self, number: str, text: str) -> None:
        with self._asking(f"comment on issue {number} of"):
            self._repository.get_issue(int(number)).create_comment(text)

    @cached_property
    def _me(self) -> int:
        return self._client.me()

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        try:
            with self._client.errors(doing):
                yield
        except GithubError as error:
            served = error.status is not None and error.status < 500
            alone = error.status in _REFUSED
            raise UndeliveredError(str(error), alone=alone, again=not served) from None


def _read_github(found: GithubIssue, complaint: str = "") -> Issue:
    return Issue(str(found.number), plain(found.body), complaint)


class _GitlabTracker:
    """The issues of a GitLab project, by its REST interface."""

    def __init__(self, channel: Gitlab) -> None:
        token = read_secret(channel.token_from, *_TOKEN)
        self._http = Http([token], {"PRIVATE-TOKEN": token})
        self._api = f"{channel.url.rstrip('/')}/api/v4"
        self._issues = f"{self._api}/projects/{quote(channel.project, safe='')}/issues"
        self._label = channel.label

    def find(self, is_marked: Callable[[str], bool]) -> list[Issue]:
        ours = {"labels": self._label, "author_id": self._me, "state": "all"}
        pages = self._pages(self._issues, {**ours, "order_by": "created_at", "sort": "asc"})
        return [_read_gitlab(one) for one in pages if is_marked(one["description"] or "")]

    def get(self, number: str) -> Issue | None:
        try:
            found = self._http.call("GET", f"{self._issues}/{number}").json()
        except UndeliveredError as error:
            if str(error).startswith("answered 404"):
                return None
            raise
        return _read_gitlab(found) if found["author"]["id"] == self._me else None

    def create(self, wanted: WantedIssue) -> Issue:
        sent = {"title": wanted.title, "description": wanted.body, "labels": self._label}
        made = self._http.call("POST", self._issues, json=sent).json()
        complaint = f"GitLab left the label {self._label} out: the token needs the role Reporter"
        return _read_gitlab(made, "" if self._label in made["labels"] else complaint)

    def change(self, number: str, wanted: WantedIssue) -> None:
        event = "reopen" if wanted.is_open else "close"
        sent = {"title": wanted.title, "description": wanted.body, "state_event": event}
        self._http.call("PUT", f"{self._issues}/{number}", json=sent)

    def comments(self, number: str) -> Iterator[str]:
        order = {"order_by": "created_at", "sort": "desc"}
        for note in self._pages(f"{self._issues}/{number}/notes", order):
            if note["author"]["id"] == self._me:
                yield note["body"]

    def comment(self, number: str, text: str) -> None:
        self._http.call("POST", f"{self._issues}/{number}/notes", json={"body": text})

    @cached_property
    def _me(self) -> int:
        return int(self._http.call("GET", f"{self._api}/user").json()["id"])

    def _pages(self, url: str, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
        page = "1"
        while page:
            params = {**wanted, "per_page": _PAGE, "page": page}
            answer = self._http.call("GET", url, params=params)
            yield from answer.json()
            page = answer.headers.get("x-next-page", "")


def _read_gitlab(found: dict[str, Any], complaint: str = "") -> Issue:
    return Issue(str(found["iid"]), found["description"] or "", complaint)


def open_tracker(channel: Github | Gitlab) -> IssueClient:
    """Open the issues of a channel; ``UndeliveredError`` where its token is missing."""
    tracker = _GithubTracker(channel) if isinstance(channel, Github) else _GitlabTracker(channel)
    return IssueClient(tracker)
