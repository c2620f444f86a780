"""Who asked: GitHub's word on a comment and on what its author may do.

Nothing of an event is believed. The comment is read again by its number, and has to say what it
said when it was made. Rights are asked for by name, since GitHub's interface knows no other way,
and the answer has to be about the account with the author's number: names change hands.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

from github import GithubException
from github.IssueComment import IssueComment

from hybridwatch.integrations.github.claim import Claim
from hybridwatch.integrations.github.door import Access, Door, author_of, plain

_MAY_WRITE: Final = frozenset({"admin", "maintain", "write"})
"""GitHub answers ``write`` for the role maintain, and ``read`` for triage."""
_HINTS: Final = {
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not do this: it takes the permission `pull-requests: read`",
}
_RETRIED: Final = frozenset({"GET"})
_NOBODY: Final = 404
_BOT: Final = "Bot"


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody who may write, and asked.

    Attributes:
        login: The name of the account.
        at: When the comment was made.
    """

    login: str
    at: datetime


def asker_of(access: Access, repository: str, claim: Claim) -> Asker | None:
    """Say who asked; ``None`` for anybody without the right to write, and for a claim that is off.

    Args:
        access: How to get in.
        repository: ``owner/name``.
        claim: What the event says.

    Raises:
        GithubError: GitHub refuses us.
    """
    door = Door(access, f"{repository}#{claim.pull_request}", _RETRIED, _HINTS)
    with door.errors("read a comment on"):
        try:
            comment = _comment(door, repository, claim)
        except GithubException as error:
            if error.status == _NOBODY:
                return None
            raise
        if not _is_as_claimed(comment, claim):
            return None
    with door.errors("read who may write to"):
        login = comment.user.login
        if not _may_write(door, repository, login, claim.author):
            return None
        return Asker(login, comment.created_at)


def _comment(door: Door, repository: str, claim: Claim) -> IssueComment:
    """Read the comment; PyGithub's own way begins at an issue, which is one request more."""
    path = f"/repos/{repository}/issues/comments/{claim.comment}"
    headers, data = door.github.requester.requestJsonAndCheck("GET", path)
    return IssueComment(door.github.requester, headers, data)


def _is_as_claimed(comment: IssueComment, claim: Claim) -> bool:
    return (
        author_of(comment) == claim.author
        and comment.user.type != _BOT
        and comment.issue_url.endswith(f"/issues/{claim.pull_request}")
        and plain(comment.body) == plain(claim.body)
    )


def _may_write(door: Door, repository: str, login: str, author: int) -> bool:
    path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
    try:
        _, found = door.github.requester.requestJsonAndCheck("GET", path)
    except GithubException as error:
        if error.status == _NOBODY:
            return False
        raise
    user = found.get("user") or {}
    return user.get("id") == author and found.get("permission") in _MAY_WRITE
