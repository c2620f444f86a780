"""Turns a command in a comment into an entry of the request queue in our own comment.

Nothing of GitHub's event is believed: the comment is read again by its number, and rights are those
of the account with the author's number, since names change hands. A line speaks to the bot if it
begins with its name in a paragraph of its own, as Markdown's parser sees it, in a comment without
HTML or a block of ``$$``, which can show a text as something else.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from github import GithubException
from github.IssueComment import IssueComment
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.analysis.wording.report_json import kept_at
from hybridwatch.errors import GithubError, RecordError
from hybridwatch.integrations.github.client import (
    GitHubClient,
    PullRequest,
    RepositoryAccess,
    find_author,
    plain,
)
from hybridwatch.integrations.github.grammar import (
    Bisect,
    Command,
    Measure,
    Misread,
    Vocabulary,
    arguments,
    parse,
)
from hybridwatch.integrations.github.our_comment import (
    MOST_OPEN,
    CommentRequest,
    RequestState,
    read_comment,
    write_comment,
)
from hybridwatch.records.json_checks import first_fault
from hybridwatch.records.store import read_file
from hybridwatch.reports.pull_request import news_in

_NAME: Final = re.compile(r"@hybridwatch(?=[ \t\r\n]|$)", re.ASCII | re.IGNORECASE)
_LONGEST_COMMENT: Final = 8192
"""Characters of a comment that is parsed, which takes the square of them."""
_MATH: Final = "$"
_HTML: Final = {"html_block", "html_inline"}
_ENDS: Final = {"softbreak", "hardbreak"}
_MARKDOWN: Final = MarkdownIt("commonmark").enable("table").disable("text_join")
"""Joined texts would hide which characters were written as escapes or entities."""
_MOST_BYTES: Final = 4 * 2**20
_Number = Annotated[int, Field(gt=0)]
_MAY_WRITE: Final = frozenset({"admin", "maintain", "write"})
"""GitHub answers ``write`` for the role maintain, and ``read`` for triage."""
_HINTS: Final = {
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not do this: it takes the permission `pull-requests: read`",
}
_NOT_FOUND: Final = 404
_BOT: Final = "Bot"


def addressed_to_us(body: str) -> list[str]:
    """Give what each line that speaks to the bot says behind its name.

    What is more than plain text in it becomes an unprintable mark, so that no grammar takes it.
    """
    if not _may_address(body):
        return []
    tokens = _MARKDOWN.parse(body)
    inlines = [
        token
        for before, token in pairwise(tokens)
        if before.type == "paragraph_open" and before.level == 0 and token.type == "inline"
        # GitHub shows what is between two of them as a formula.
        if token.content.count(_MATH) < 2
    ]
    if any(_can_hide_text(token) for token in tokens):
        return []
    lines = [line for inline in inlines for line in _lines(inline)]
    found = [(line, _NAME.match(line)) for line in lines]
    return [line[match.end() :].strip(" \t") for line, match in found if match]


def _may_address(body: str) -> bool:
    return len(body) <= _LONGEST_COMMENT and _NAME.search(body) is not None


def _can_hide_text(token: Token) -> bool:
    if token.type == "inline" and 2 * _MATH in token.content:
        return True
    return token.type in _HTML or any(child.type in _HTML for child in token.children or ())


def _lines(inline: Token) -> Iterator[str]:
    line = ""
    for child in inline.children or ():
        if child.type in _ENDS:
            yield line
            line = ""
        else:
            line += child.content if child.type == "text" else "\0"
    yield line


class CommentEvent(BaseModel):
    """GitHub's event of a comment, with its body as it was when it was made."""

    model_config = ConfigDict(frozen=True, strict=True)
    action: str
    comment: _Number = kept_at("comment.id")
    body: str = kept_at("comment.body")
    author: _Number = kept_at("comment.user.id")
    issue: _Number = kept_at("issue.number")
    pull_request: dict[str, object] | None = kept_at("issue.pull_request", default=None)
    repository: str = kept_at("repository.full_name")


def read_event(event: Path, repository: str) -> CommentEvent | None:
    """Read the file of an event ``issue_comment``; ``None`` for one that asks for nothing.

    Only ``created`` counts: a comment that is edited may have been edited by another person than
    its author, and GitHub does not say in the event by whom.
    """
    try:
        found = CommentEvent.model_validate_json(read_file(event, _MOST_BYTES))
    except (OSError, RecordError) as error:
        raise GithubError(f"{event}: cannot be read: {error}") from error
    except ValidationError as error:
        fault = first_fault(error, "expected an event issue_comment: ")
        raise GithubError(f"{event}: {fault}") from None
    if found.repository.lower() != repository.lower():
        raise GithubError(
            f"{event}: repository.full_name: expected {repository}, "
            f"found {found.repository[:100]!r}"
        )
    is_command = found.action == "created" and found.pull_request is not None
    return found if is_command else None


@dataclass(frozen=True, slots=True)
class Requester:
    """The author of a command, who has the right to write, and when the comment was made."""

    login: str
    at: datetime


def find_requester(
    access: RepositoryAccess, repository: str, claim: CommentEvent
) -> Requester | None:
    """Find the author of a command; ``None`` for a wrong claim, or without the right to write."""
    client = GitHubClient(access, f"{repository}#{claim.issue}", _HINTS)
    with client.errors("read a comment on"):
        try:
            comment = _comment(client, repository, claim)
        except GithubException as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        if not _is_as_claimed(comment, claim):
            return None
    with client.errors("read who may write to"):
        login = comment.user.login
        if not _may_write(client, repository, login, claim.author):
            return None
        return Requester(login, comment.created_at)


def _comment(client: GitHubClient, repository: str, claim: CommentEvent) -> IssueComment:
    """Read the comment; PyGithub's own way begins at an issue, which is one request more."""
    path = f"/repos/{repository}/issues/comments/{claim.comment}"
    headers, data = client.github.requester.requestJsonAndCheck("GET", path)
    return IssueComment(client.github.requester, headers, data)


def _is_as_claimed(comment: IssueComment, claim: CommentEvent) -> bool:
    return (
        find_author(comment) == claim.author
        and comment.user.type != _BOT
        and comment.issue_url.endswith(f"/issues/{claim.issue}")
        and plain(comment.body) == plain(claim.body)
    )


def _may_write(client: GitHubClient, repository: str, login: str, author: int) -> bool:
    path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
    try:
        _, found = client.github.requester.requestJsonAndCheck("GET", path)
    except GithubException as error:
        if error.status == _NOT_FOUND:
            return False
        raise
    user = found.get("user") or {}
    return user.get("id") == author and found.get("permission") in _MAY_WRITE


_LOOKS: Final = 4
"""How often our comment is looked at until what we wrote stands: others write it as well."""
_PAUSE_S: Final = 3.0
"""Longer than it takes from a look at our comment to its edit, which follows within a second."""
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class AnswerOrder:
    """An entry of the queue, with its command unless it was refused."""

    asked: CommentRequest
    command: Command | None
    pull: PullRequest


def take(
    access: RepositoryAccess,
    repository: str,
    claim: CommentEvent,
    vocabulary: Callable[[], Vocabulary],
    builds: Sequence[str],
) -> AnswerOrder | None:
    """Decide about a comment; nothing is written yet. ``None`` when nothing is to happen.

    Nothing that a stranger wrote is parsed: whether our name is in the comment is looked for first,
    then whether its author may ask, whether it is addressed to us, whether it was answered before,
    and what it means. ``builds`` are what ``run`` compares when no builds are named.
    """
    requester = find_requester(access, repository, claim) if _may_address(claim.body) else None
    lines = addressed_to_us(claim.body) if requester else []
    if requester is None or not lines:
        return None
    pull = PullRequest(access, repository, claim.issue)
    queue = read_comment(pull.our_comment(is_ours)).queue
    if queue.knows(claim.comment):
        return None
    read = _read(lines, vocabulary)
    if isinstance(read, Measure) and not (read.builds or read.known_bad):
        read = replace(read, builds=tuple(builds))
    if isinstance(read, Misread):
        return _refused(claim, requester, pull, lines[0], read.reason)
    words = " ".join(arguments(read)) or "help"
    if why := _hindrance(read, requester, pull, is_full=queue.is_full(requester.at)):
        return _refused(claim, requester, pull, words, why)
    entry = _entry(claim, requester, words, RequestState.QUEUED)
    return AnswerOrder(entry, read, pull)


def put_entry(pull: PullRequest, entry: CommentRequest, result: str = "") -> None:
    """Write how a command stands into our comment, and its result in place of the one before.

    Two jobs may write at once, and GitHub keeps the later text: we look again until ours is in it.
    """

    def text_after(body: str | None) -> str:
        now = read_comment(body)
        changed = replace(now, queue=now.queue.having(entry), result=result or now.result)
        return write_comment(changed)

    for _ in range(_LOOKS):
        if pull.comment(is_ours, text_after) == "unchanged":
            return
        time.sleep(_PAUSE_S)


def is_ours(body: str) -> bool:
    """Whether a comment has our marker."""
    return news_in(body) is not None


def _read(lines: Sequence[str], vocabulary: Callable[[], Vocabulary]) -> Command | Misread:
    if len(lines) > 1:
        return Misread(f"expected one command in a comment, found {len(lines)}")
    return parse(lines[0], vocabulary())


def _hindrance(command: Command, requester: Requester, pull: PullRequest, *, is_full: bool) -> str:
    """Say why a command that was understood is not run; empty when nothing is in the way."""
    if not isinstance(command, Measure | Bisect):  # it takes neither code nor an engine
        return ""
    if not pull.is_open:
        return "the pull request is closed"
    if not pull.is_unchanged_since(requester.at):
        return "the branch was pushed to after the comment; look at it and ask again"
    if is_full:
        return f"{MOST_OPEN} commands wait or run already"
    return ""


def _refused(
    claim: CommentEvent, requester: Requester, pull: PullRequest, words: str, why: str
) -> AnswerOrder:
    shown = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
    return AnswerOrder(_entry(claim, requester, shown, RequestState.REFUSED, why), None, pull)


def _entry(
    claim: CommentEvent, requester: Requester, words: str, state: RequestState, note: str = ""
) -> CommentRequest:
    return CommentRequest(
        comment=claim.comment,
        words=words,
        who=requester.login,
        at=requester.at,
        state=state,
        note=note,
    )
