"""The issues of a GitHub repository, for ``issues``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from hybridwatch.errors import GithubError
from hybridwatch.integrations.github.client import RepositoryAccess
from hybridwatch.integrations.github.issues import OurIssues, Written
from hybridwatch.integrations.notify.channels import Github
from hybridwatch.integrations.notify.client import UndeliveredError, read_secret
from hybridwatch.integrations.notify.issues import Issue, WantedIssue

_REFUSED: Final = frozenset({400, 422})
"""Of one message; any other answer is about everything that we ask."""
_LONGEST_WAIT_S: Final = 60.0


class GithubTracker:
    """A repository's issues.

    Raises:
        UndeliveredError: The token is missing in the environment.
    """

    def __init__(self, channel: Github) -> None:
        token = read_secret(channel.token_from, r"[!-~]+", "a token")
        access = RepositoryAccess(token, channel.api.rstrip("/"), _LONGEST_WAIT_S)
        self._label = channel.label
        with _undelivered():
            self._ours = OurIssues(access, channel.repository, channel.label)

    def find(self, is_marked: Callable[[str], bool]) -> list[Issue]:
        """List our issues with a mark in their text, the oldest first."""
        with _undelivered():
            return [_issue(one) for one in self._ours.find(is_marked)]

    def get(self, number: str) -> Issue | None:
        """Give an issue of ours; ``None`` if it is gone, or of another author."""
        with _undelivered():
            found = self._ours.get(int(number))
        return None if found is None else _issue(found)

    def create(self, wanted: WantedIssue) -> Issue:
        """Make an issue."""
        with _undelivered():
            made = self._ours.create(wanted.title, wanted.body)
        if made.has_label:
            return _issue(made)
        complaint = (
            f"GitHub left the label {self._label} out, by which an issue is found again: the token "
            "needs `issues: write`, or the right to push"
        )
        return Issue(str(made.number), made.body, complaint)

    def change(self, number: str, wanted: WantedIssue) -> None:
        """Make an issue as it shall be."""
        state = "open" if wanted.is_open else "closed"
        ended = "completed" if wanted.is_done else "not_planned"
        reason = "reopened" if wanted.is_open else ended
        with _undelivered():
            self._ours.change(int(number), wanted.title, wanted.body, state=state, reason=reason)

    def comments(self, number: str) -> Iterator[str]:
        """Give the texts of our comments."""
        with _undelivered():
            yield from self._ours.comments(int(number))

    def comment(self, number: str, text: str) -> None:
        """Add a comment."""
        with _undelivered():
            self._ours.comment(int(number), text)


@contextmanager
def _undelivered() -> Iterator[None]:
    try:
        yield
    except GithubError as error:
        served = error.status is not None and error.status < 500
        alone = error.status in _REFUSED
        raise UndeliveredError(str(error), alone=alone, again=not served) from None


def _issue(found: Written) -> Issue:
    return Issue(str(found.number), found.body)
