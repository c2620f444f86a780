"""The client of GitHub's API, and a pull request there: its commits, our one comment, our check.

The token leaves this module in the request's header alone, never in a log or an error.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import requests
from github import Auth, Github, GithubException, GithubRetry, RateLimitExceededException
from github.GithubObject import NotSet
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.NamedUser import NamedUser
from github.Organization import Organization
from github.Repository import Repository

from hybridwatch.errors import GithubError

PUBLIC_API: Final = "https://api.github.com"
_TIMEOUT_S: Final = 20
_RETRIES: Final = 4
_LONGEST_WAIT_S: Final = 120.0
"""A job that waits longer for a rate limit costs more than starting it again."""
_PAGE: Final = 100
_INSTALLATION: Final = "ghs_"
"""How the tokens of jobs and apps begin; REST does not say whose they are, GraphQL does."""
_VIEWER: Final = "query { viewer { databaseId } }"
_SHOWN: Final = 300
_HIDDEN: Final = "***"
_REQUESTS: Final = logging.getLogger("github.Requester")
"""Where PyGithub logs what it sent and what came back."""


@contextmanager
def discreet(logger: logging.Logger, redact: Callable[[str], str]) -> Iterator[None]:
    """Within the block, let a logger say nothing that ``redact`` takes out of a text."""

    def black_out(record: logging.LogRecord) -> bool:
        shown = record.getMessage()
        if (hidden := redact(shown)) != shown:
            record.msg, record.args = hidden, ()
        return True

    logger.addFilter(black_out)
    try:
        yield
    finally:
        logger.removeFilter(black_out)


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    """How to reach GitHub: a token of a job, an app or a person; what is public needs none."""

    token: str
    api: str = PUBLIC_API
    longest_wait_s: float = _LONGEST_WAIT_S

    def __repr__(self) -> str:
        """Show everything but the token."""
        return f"RepositoryAccess(api={self.api!r})"

    def redact(self, text: str) -> str:
        """Take the token out of a text."""
        return text.replace(self.token, _HIDDEN) if self.token else text


class GitHubClient:
    """A client of GitHub for one thing there, which has a name for messages.

    What ``github``, PyGithub's client, raises is turned into words within ``errors``, with hints of
    what a status may mean here. Only ``retried`` methods are sent again when the server fails.
    """

    def __init__(
        self,
        access: RepositoryAccess,
        name: str,
        hints: Mapping[int, str],
        retried: Collection[str] = ("GET",),
    ) -> None:
        self.name = name
        self._access = access
        self._hints = hints
        retry = GithubRetry(
            total=_RETRIES,
            max_rate_limit_wait=access.longest_wait_s,
            secondary_rate_wait=min(60.0, access.longest_wait_s),
            retry_after_max=int(access.longest_wait_s),
            allowed_methods=set(retried),
        )
        self.github = Github(
            auth=Auth.Token(access.token) if access.token else None,
            base_url=access.api,
            timeout=_TIMEOUT_S,
            retry=retry,
            per_page=_PAGE,
            lazy=True,
        )

    def me(self) -> int:
        """Give the number of the account as which the token writes; no other ever gets it."""
        if not self._access.token.startswith(_INSTALLATION):
            try:
                return self.github.get_user().id
            except GithubException as error:
                if error.status != 403 or isinstance(error, RateLimitExceededException):
                    raise
        _, answer = self.github.requester.graphql_query(_VIEWER, {})
        found = ((answer.get("data") or {}).get("viewer") or {}).get("databaseId")
        if not isinstance(found, int):
            raise GithubError(f"GitHub: does not say as whom the token writes: found {found!r}")
        return found

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Turn what the library raises into one line without the token."""
        message, status = None, None
        try:
            with discreet(_REQUESTS, self._access.redact):
                yield
        except RateLimitExceededException as error:
            message = f"rate limit: {_message(error)}; start the job again later"
        except GithubException as error:
            status = error.status
            hint = self._hints.get(status)
            message = f"{status}: {_message(error)}" + (f" ({hint})" if hint else "")
        except requests.RequestException as error:
            message = f"cannot be reached: {type(error).__name__}: {error}"
        if message is not None:
            line = self._access.redact(" ".join(message.split()))
            # A chained exception would show the server's answer, word for word.
            raise GithubError(
                f"GitHub: cannot {doing} {self.name}: {line[:_SHOWN]}", status
            ) from None


def find_author(written: IssueComment | Issue) -> int | None:
    """Give the number of who wrote something; ``None`` for an account that is gone."""
    user: NamedUser | Organization | None = written.user
    return None if user is None else user.id


def plain(text: str | None) -> str:
    """Give a text as it was sent: GitHub keeps the line ends of an edit by hand."""
    return (text or "").replace("\r\n", "\n").strip()


def _message(error: GithubException) -> str:
    data = error.data if isinstance(error.data, dict) else {}
    return str(data.get("message") or error.message or "no reason given")


_CHECK: Final = "hybridwatch"
_HINTS: Final = {
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not do this: comments take the permission "
    "`pull-requests: write`, checks `checks: write`",
    404: "there is no such repository or pull request, or the token may not see it",
    422: "GitHub does not take this content",
}
_RETRIED: Final = frozenset({"GET", "POST", "PATCH", "DELETE"})
"""Also what makes something: after posting we look whether it is there twice."""


class PullRequest:
    """One pull request."""

    def __init__(self, access: RepositoryAccess, repository: str, number: int) -> None:
        self._client = GitHubClient(access, f"{repository}#{number}", _HINTS, _RETRIED)
        with self._client.errors("read"):
            self._repository = self._client.github.get_repo(repository)
            self._pull = self._repository.get_pull(number)
            self.head: str = self._pull.head.sha
            self.number = number

    def has_commit(self, sha: str) -> bool:
        """Whether a commit is one of the pull request's, its head or an earlier one."""
        with self._client.errors("read the commits of"):
            return sha == self.head or any(c.sha == sha for c in self._pull.get_commits())

    @property
    def is_open(self) -> bool:
        """Whether it is neither merged nor closed."""
        return self._pull.state == "open"

    def is_unchanged_since(self, moment: datetime) -> bool:
        """Whether nothing was pushed to its branch's repository since, by GitHub's own clock."""
        repository: Repository | None = self._pull.head.repo
        pushed_at = None if repository is None else repository.pushed_at
        return pushed_at is not None and pushed_at < moment

    def our_comment(self, is_marked: Callable[[str], bool]) -> str | None:
        """Give what our comment says, found as ``comment`` does; ``None`` if there is none."""
        with self._client.errors("read the comments on"):
            ours = self._ours(is_marked, self._client.me())
            return ours[0].body if ours else None

    def comment(
        self, is_marked: Callable[[str], bool], text_after: Callable[[str | None], str | None]
    ) -> str:
        """Keep one comment of ours: ``posted``, ``edited``, ``unchanged`` or ``silent``.

        A mark alone does not make a comment ours, since all can copy it: its author must have the
        number of the account as which the token writes. Two jobs may do this at once, and a request
        that seemed to fail may have been served: after posting we look again, the oldest comment
        stays and gets our text, the others go. ``text_after`` gives what it shall say, of what it
        says now; ``None`` for nothing.
        """
        with self._client.errors("comment on"):
            me = self._client.me()
            ours = self._ours(is_marked, me)
            text = text_after(ours[0].body if ours else None)
            if text is None:
                return "silent"
            posted = not ours
            if posted:
                made = self._pull.create_issue_comment(text)
                if not _is_by(made, me):  # it would not be found again, and be there twice
                    raise GithubError(
                        f"GitHub: the comment on {self._client.name} was written by "
                        f"{find_author(made)}, the token is of {me}: remove the comment, and mend "
                        "the token"
                    )
                ours = self._ours(is_marked, me)
            edited = self._keep_first(ours, text)
            return "posted" if posted else "edited" if edited else "unchanged"

    def check(self, sha: str, conclusion: str, title: str, summary: str, url: str = "") -> str:
        """Give a commit its status, unless it has this one already.

        It is ``success``, ``neutral`` or ``failure``, with a summary in Markdown and a page's URL.
        """
        with self._client.errors(f"give a check to commit {sha[:12]} of"):
            commit = self._repository.get_commit(sha)
            latest = list(commit.get_check_runs(check_name=_CHECK, filter="latest"))
            shown = {
                (run.conclusion, run.output.title, plain(run.output.summary)) for run in latest
            }
            if shown == {(conclusion, title, plain(summary))}:
                return "unchanged"
            self._repository.create_check_run(
                name=_CHECK,
                head_sha=sha,
                status="completed",
                conclusion=conclusion,
                output={"title": title, "summary": summary},
                details_url=url or NotSet,
            )
            return "posted"

    def _ours(self, is_marked: Callable[[str], bool], me: int) -> list[IssueComment]:
        found = [
            comment
            for comment in self._pull.get_issue_comments()
            if is_marked(comment.body or "") and _is_by(comment, me)
        ]
        return sorted(found, key=lambda comment: comment.id)

    def _keep_first(self, ours: list[IssueComment], text: str) -> bool:
        edited = False
        if ours and plain(ours[0].body) != plain(text):
            ours[0].edit(text)
            edited = True
        for extra in ours[1:]:
            try:
                extra.delete()
            except GithubException as error:
                if error.status != 404:  # the other job was faster
                    raise
        return edited


def _is_by(comment: IssueComment, me: int) -> bool:
    return find_author(comment) == me
