"""From a comment that asks to an entry in the queue of our one comment."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hybridwatch.integrations.github.claim import Asker, Claim, addressed_to_us, find_asker
from hybridwatch.integrations.github.client import RepositoryAccess
from hybridwatch.integrations.github.grammar import (
    Bisect,
    Command,
    Measure,
    Misread,
    arguments,
    parse,
)
from hybridwatch.integrations.github.our_comment import read_comment, write_comment
from hybridwatch.integrations.github.pull_request import PullRequest
from hybridwatch.integrations.github.requests import MOST_OPEN, CommentRequest, RequestState
from hybridwatch.integrations.github.vocabulary import Vocabulary
from hybridwatch.reports.pull_request import news_in

_LOOKS: Final = 4
"""How often our comment is looked at until what we wrote stands: others write it as well."""
_PAUSE_S: Final = 3.0
"""Longer than it takes from a look at our comment to its edit, which follows within a second."""
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class AnswerOrder:
    """A command that was taken.

    Attributes:
        command: What it is; ``None`` for one that was refused.
    """

    asked: CommentRequest
    command: Command | None
    pull: PullRequest


def take(
    access: RepositoryAccess,
    repository: str,
    claim: Claim,
    vocabulary: Callable[[], Vocabulary],
    builds: Sequence[str],
) -> AnswerOrder | None:
    """Decide about a comment; nothing is written yet.

    The order of the questions is the order of what they cost: whether the comment is addressed to
    us, whether its author may ask, whether it was answered before, and what it means.

    ``builds`` are what ``run`` compares when no builds are named. ``None`` comes when nothing is to
    happen.

    Raises:
        GithubError: GitHub refuses us.
    """
    lines = addressed_to_us(claim.body)
    if not lines:
        return None
    asker = find_asker(access, repository, claim)
    if asker is None:
        return None
    pull = PullRequest(access, repository, claim.pull_request)
    queue = read_comment(pull.our_comment(is_ours)).queue
    if queue.knows(claim.comment):
        return None
    read = _read(lines, vocabulary)
    if isinstance(read, Measure) and not (read.builds or read.known_bad):
        read = replace(read, builds=tuple(builds))
    if isinstance(read, Misread):
        return _refused(claim, asker, pull, lines[0], read.reason)
    words = " ".join(arguments(read)) or "help"
    if why := _hindrance(read, asker, pull, is_full=queue.is_full(asker.at)):
        return _refused(claim, asker, pull, words, why)
    entry = _entry(claim, asker, words, RequestState.QUEUED)
    return AnswerOrder(entry, read, pull)


def put_entry(pull: PullRequest, entry: CommentRequest, result: str = "") -> None:
    """Write how a command stands into our comment.

    Two jobs may write at once, and GitHub keeps the later text. So we look again, when a job that
    had read our comment before we wrote it is done with writing, until our entry is in it. The
    newest result, in Markdown, takes the place of the one before.

    Raises:
        GithubError: GitHub refuses us.
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


def _hindrance(command: Command, asker: Asker, pull: PullRequest, *, is_full: bool) -> str:
    """Say why a command that was understood is not run; empty when nothing is in the way."""
    if not measures(command):
        return ""
    if not pull.is_open:
        return "the pull request is closed"
    if not pull.stood_still_since(asker.at):
        return "the branch was pushed to after the comment; look at it and ask again"
    if is_full:
        return f"{MOST_OPEN} commands wait or run already"
    return ""


def measures(command: Command) -> bool:
    """Whether a command takes the pull request's code and an engine."""
    return isinstance(command, Measure | Bisect)


def _refused(claim: Claim, asker: Asker, pull: PullRequest, words: str, why: str) -> AnswerOrder:
    shown = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
    return AnswerOrder(_entry(claim, asker, shown, RequestState.REFUSED, why), None, pull)


def _entry(
    claim: Claim, asker: Asker, words: str, state: RequestState, note: str = ""
) -> CommentRequest:
    return CommentRequest(
        comment=claim.comment, words=words, who=asker.login, at=asker.at, state=state, note=note
    )
