"""A pull request on GitHub: which commits it has, our one comment, our check."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from github import GithubException
from github.GithubObject import NotSet
from github.IssueComment import IssueComment
from github.Repository import Repository

from hybridwatch.errors import GithubError
from hybridwatch.integrations.github.client import (
    GitHubClient,
    RepositoryAccess,
    find_author,
    plain,
)

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


@dataclass(frozen=True, slots=True)
class Check:
    """The status that a commit gets.

    Attributes:
        conclusion: ``success``, ``neutral`` or ``failure``.
        summary: Markdown, at most 65,535 characters.
        details_url: Where all of it is, ``None`` for nowhere.
    """

    conclusion: str
    title: str
    summary: str
    details_url: str | None = None


class PullRequest:
    """One pull request.

    Raises:
        GithubError: There is none such, or GitHub refuses us.
    """

    def __init__(self, access: RepositoryAccess, repository: str, number: int) -> None:
        self._client = GitHubClient(access, f"{repository}#{number}", _RETRIED, _HINTS)
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

    def stood_still_since(self, moment: datetime) -> bool:
        """Whether nothing was pushed to the repository of its branch since then.

        GitHub does not say which commit was the head when a comment was made. It does say when it
        last took a push there, by its own clock.
        """
        repository: Repository | None = self._pull.head.repo
        pushed_at = None if repository is None else repository.pushed_at
        return pushed_at is not None and pushed_at < moment

    def our_comment(self, is_marked: Callable[[str], bool]) -> str | None:
        """Give what our comment says, found as ``comment`` does; ``None`` if there is none.

        Raises:
            GithubError: GitHub refuses, or does not say as whom the token writes.
        """
        with self._client.errors("read the comments on"):
            ours = self._ours(is_marked, self._client.me())
            return ours[0].body if ours else None

    def comment(
        self, is_marked: Callable[[str], bool], text_after: Callable[[str | None], str | None]
    ) -> str:
        """Keep one comment of ours.

        A mark alone does not make a comment ours, since all can copy it, other bots too: its author
        must have the number of the account as which the token writes.

        Two jobs may do this at once, and a request that seemed to fail may have been served: after
        posting we look again, the oldest comment stays and gets our text, the others go.

        ``is_marked`` says whether a comment's text is one of ours. ``text_after`` is given what our
        comment says now (``None``: there is none), and gives what it shall say; ``None`` for
        nothing. What was done is ``posted``, ``edited``, ``unchanged`` or ``silent``.

        Raises:
            GithubError: GitHub refuses, or does not say as whom the token writes.
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

    def check(self, sha: str, check: Check) -> str:
        """Give a commit its status, unless it has this one already."""
        with self._client.errors(f"give a check to commit {sha[:12]} of"):
            commit = self._repository.get_commit(sha)
            latest = list(commit.get_check_runs(check_name=_CHECK, filter="latest"))
            shown = {
                (run.conclusion, run.output.title, plain(run.output.summary)) for run in latest
            }
            if shown == {(check.conclusion, check.title, plain(check.summary))}:
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
