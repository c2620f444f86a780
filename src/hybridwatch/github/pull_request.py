"""A pull request on GitHub: which commits it has, our one comment, our check.

PyGithub speaks HTTP: pages, retries, waiting for rate limits. The token never leaves this module
except in the request's header: not in a log, not in an error, even if the server says it back.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import requests
from github import Auth, Github, GithubException, GithubRetry, RateLimitExceededException
from github.GithubObject import NotSet
from github.IssueComment import IssueComment
from github.NamedUser import NamedUser
from github.Organization import Organization

from hybridwatch.errors import GithubError

PUBLIC_API: Final = "https://api.github.com"

_TIMEOUT_S: Final = 20
_RETRIES: Final = 4
_LONGEST_WAIT_S: Final = 120.0
"""A job that waits longer for a rate limit costs more than starting it again."""
_PAGE: Final = 100
_CHECK: Final = "hybridwatch"
_INSTALLATION: Final = "ghs_"
"""How the tokens of jobs and apps begin; REST does not say whose they are, GraphQL does."""
_VIEWER: Final = "query { viewer { databaseId } }"
_SHOWN: Final = 300
_HIDDEN: Final = "***"
_REQUESTS: Final = logging.getLogger("github.Requester")
"""Where PyGithub logs what it sent and what came back."""

_HINTS: Final = {
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not do this: comments take the permission "
    "`pull-requests: write`, checks `checks: write`",
    404: "there is no such repository or pull request, or the token may not see it",
    422: "GitHub does not take this content",
}


@dataclass(frozen=True, slots=True)
class Access:
    """How to get in.

    Attributes:
        token: Of a job (``GITHUB_TOKEN``), of an app, or a person's; without one what is public
            can be read.
        api: Address of the API, ``https://api.github.com`` or a server of one's own.
        longest_wait_s: For a rate limit to end.
    """

    token: str
    api: str = PUBLIC_API
    longest_wait_s: float = _LONGEST_WAIT_S

    def __repr__(self) -> str:
        """Show everything but the token."""
        return f"Access(api={self.api!r})"

    def redact(self, text: str) -> str:
        """Take the token out of a text."""
        return text.replace(self.token, _HIDDEN) if self.token else text


@dataclass(frozen=True, slots=True)
class Check:
    """The status that a commit gets.

    Attributes:
        conclusion: ``success``, ``neutral`` or ``failure``.
        title: One line.
        summary: Markdown, at most 65,535 characters.
        details_url: Where the whole story is, ``None`` for nowhere.
    """

    conclusion: str
    title: str
    summary: str
    details_url: str | None = None


class PullRequest:
    """One pull request.

    Args:
        access: How to get in.
        repository: ``owner/name``.
        number: Of the pull request.

    Raises:
        GithubError: There is none such, or GitHub does not let us in.
    """

    def __init__(self, access: Access, repository: str, number: int) -> None:
        self._access = access
        self._name = f"{repository}#{number}"
        retry = GithubRetry(
            total=_RETRIES,
            max_rate_limit_wait=access.longest_wait_s,
            secondary_rate_wait=min(60.0, access.longest_wait_s),
            retry_after_max=int(access.longest_wait_s),
            allowed_methods={"GET", "POST", "PATCH", "DELETE"},
        )
        self._github = Github(
            auth=Auth.Token(access.token) if access.token else None,
            base_url=access.api,
            timeout=_TIMEOUT_S,
            retry=retry,
            per_page=_PAGE,
            lazy=True,
        )
        with self._as_github_errors("read"):
            self._repository = self._github.get_repo(repository)
            self._pull = self._repository.get_pull(number)
            self.head: str = self._pull.head.sha

    def has_commit(self, sha: str) -> bool:
        """Whether a commit is one of the pull request's, its head or an earlier one."""
        with self._as_github_errors("read the commits of"):
            return sha == self.head or any(c.sha == sha for c in self._pull.get_commits())

    def comment(
        self, is_marked: Callable[[str], bool], text_after: Callable[[str | None], str | None]
    ) -> str:
        """Keep one comment of ours.

        A mark alone does not make a comment ours, since anybody can copy it, other bots too: its
        author must have the number of the account as which the token writes.

        Two jobs may do this at once, and a request that seemed to fail may have been served: after
        posting we look again, the oldest comment stays and gets our text, the others go.

        Args:
            is_marked: Whether a comment's text is one of ours.
            text_after: Given what our comment says now (``None``: there is none), what it shall
                say; ``None`` for nothing.

        Returns:
            What was done: ``posted``, ``edited``, ``unchanged``, ``silent``.

        Raises:
            GithubError: GitHub refuses, or does not say as whom the token writes.
        """
        with self._as_github_errors("comment on"):
            me = self._me()
            ours = self._ours(is_marked, me)
            text = text_after(ours[0].body if ours else None)
            if text is None:
                return "silent"
            posted = not ours
            if posted:
                made = self._pull.create_issue_comment(text)
                if not _is_by(made, me):  # it would not be found again, and be there twice
                    raise GithubError(
                        f"GitHub: the comment on {self._name} was written by {_author(made)}, the "
                        f"token is of {me}: remove the comment, and mend the token"
                    )
                ours = self._ours(is_marked, me)
            edited = self._keep_first(ours, text)
            return "posted" if posted else "edited" if edited else "unchanged"

    def check(self, sha: str, check: Check) -> str:
        """Give a commit its status, unless it has this one already."""
        with self._as_github_errors(f"give a check to commit {sha[:12]} of"):
            commit = self._repository.get_commit(sha)
            latest = list(commit.get_check_runs(check_name=_CHECK, filter="latest"))
            shown = {
                (run.conclusion, run.output.title, _plain(run.output.summary)) for run in latest
            }
            if shown == {(check.conclusion, check.title, _plain(check.summary))}:
                return "unchanged"
            self._repository.create_check_run(
                name=_CHECK,
                head_sha=sha,
                status="completed",
                conclusion=check.conclusion,
                output={"title": check.title, "summary": check.summary},
                details_url=NotSet if check.details_url is None else check.details_url,
            )
            return "posted"

    def _ours(self, is_marked: Callable[[str], bool], me: int) -> list[IssueComment]:
        """Find our comments, the oldest first."""
        found = [
            comment
            for comment in self._pull.get_issue_comments()
            if is_marked(comment.body or "") and _is_by(comment, me)
        ]
        return sorted(found, key=lambda comment: comment.id)

    def _me(self) -> int:
        """Give the number of the account as which the token writes; no other ever gets it."""
        if not self._access.token.startswith(_INSTALLATION):
            try:
                return self._github.get_user().id
            except GithubException as error:
                if error.status != 403 or isinstance(error, RateLimitExceededException):
                    raise
        _, answer = self._github.requester.graphql_query(_VIEWER, {})
        found = ((answer.get("data") or {}).get("viewer") or {}).get("databaseId")
        if not isinstance(found, int):
            raise GithubError(f"GitHub: does not say as whom the token writes: found {found!r}")
        return found

    def _keep_first(self, ours: list[IssueComment], text: str) -> bool:
        edited = False
        if ours and _plain(ours[0].body) != _plain(text):
            ours[0].edit(text)
            edited = True
        for extra in ours[1:]:
            try:
                extra.delete()
            except GithubException as error:
                if error.status != 404:  # the other job was faster
                    raise
        return edited

    @contextmanager
    def _as_github_errors(self, doing: str) -> Iterator[None]:
        """Turn what the library raises into one line without the token."""
        message = None
        discretion = _Discretion(self._access)
        _REQUESTS.addFilter(discretion)
        try:
            yield
        except RateLimitExceededException as error:
            message = f"rate limit: {_message(error)}; start the job again later"
        except GithubException as error:
            hint = _HINTS.get(error.status)
            message = f"{error.status}: {_message(error)}" + (f" ({hint})" if hint else "")
        except requests.RequestException as error:
            message = f"cannot be reached: {type(error).__name__}: {error}"
        finally:
            _REQUESTS.removeFilter(discretion)
        if message is not None:
            line = self._access.redact(" ".join(message.split()))
            # A chained exception would show the server's answer, word for word.
            raise GithubError(f"GitHub: cannot {doing} {self._name}: {line[:_SHOWN]}") from None


class _Discretion(logging.Filter):
    """Lets everything be logged but a token."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access

    def filter(self, record: logging.LogRecord) -> bool:
        """Black it out."""
        shown = record.getMessage()
        if (hidden := self._access.redact(shown)) != shown:
            record.msg, record.args = hidden, ()
        return True


def _is_by(comment: IssueComment, me: int) -> bool:
    return _author(comment) == me


def _author(comment: IssueComment) -> int | None:
    """Give the number of who wrote a comment; ``None`` for an account that is gone."""
    user: NamedUser | Organization | None = comment.user
    return None if user is None else user.id


def _plain(text: str | None) -> str:
    # GitHub keeps \r\n of whoever edits by hand, and may trim the end.
    return (text or "").replace("\r\n", "\n").strip()


def _message(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    return str(data.get("message") or error.message or "no reason given")
