"""Issues of a repository on GitHub that we write."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from github import GithubException
from github.Issue import Issue

from hybridwatch.integrations.github.client import (
    GitHubClient,
    RepositoryAccess,
    find_author,
    plain,
)

_HINTS: Final = {
    401: "the token is not valid",
    403: "the token may not do this: it takes the permission `issues: write`",
    404: "there is no such repository, or the token may not see it",
    410: "issues are switched off in this repository",
    422: "GitHub does not take this content",
}
_RETRIED: Final = frozenset({"GET"})
"""What makes or changes something is sent once: whether it was served is seen before the next."""
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Written:
    """An issue as it is, and whether it has the label that marks ours."""

    number: int
    body: str
    has_label: bool


class OurIssues:
    """The issues of a repository that have our label and were written with our token."""

    def __init__(self, access: RepositoryAccess, repository: str, label: str) -> None:
        self._client = GitHubClient(access, repository, _RETRIED, _HINTS)
        self._repository = self._client.github.get_repo(repository)
        self._label = label
        self._me: int | None = None

    def find(self, is_marked: Callable[[str], bool]) -> list[Written]:
        """List our issues with a mark in their text, the oldest first."""
        with self._client.errors("list the issues of"):
            me = self._myself()
            found = self._repository.get_issues(
                state="all", labels=[self._label], sort="created", direction="asc"
            )
            return [
                self._written(one)
                for one in found
                if find_author(one) == me and is_marked(one.body or "")
            ]

    def get(self, number: int) -> Written | None:
        """Give an issue of ours; ``None`` if it is gone, or of another author."""
        with self._client.errors(f"read issue {number} of"):
            me = self._myself()
            try:
                found = self._repository.get_issue(number)
                return self._written(found) if find_author(found) == me else None
            except GithubException as error:
                if error.status in _GONE:
                    return None
                raise

    def create(self, title: str, body: str) -> Written:
        """Make an issue."""
        with self._client.errors("make an issue in"):
            made = self._repository.create_issue(title, body=body, labels=[self._label])
            return self._written(made)

    def change(self, number: int, title: str, body: str, *, state: str, reason: str) -> None:
        """Change an issue in one request.

        ``state`` is ``open`` or ``closed``; ``reason`` is GitHub's for it: ``completed``,
        ``not_planned``, ``reopened``.
        """
        with self._client.errors(f"change issue {number} of"):
            self._repository.get_issue(number).edit(
                title=title, body=body, state=state, state_reason=reason
            )

    def comments(self, number: int) -> Iterator[str]:
        """Give the texts of our comments on an issue."""
        with self._client.errors(f"read the comments on issue {number} of"):
            me = self._myself()
            found = self._repository.get_issue(number).get_comments()
            texts = [plain(comment.body) for comment in found if find_author(comment) == me]
        yield from texts

    def comment(self, number: int, text: str) -> None:
        """Add a comment to an issue."""
        with self._client.errors(f"comment on issue {number} of"):
            self._repository.get_issue(number).create_comment(text)

    def _myself(self) -> int:
        if self._me is None:
            self._me = self._client.me()
        return self._me

    def _written(self, found: Issue) -> Written:
        labels = {label.name for label in found.labels}
        return Written(found.number, plain(found.body), self._label in labels)
