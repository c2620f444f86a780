"""The client of GitHub's API, for reading and writing.

PyGithub speaks HTTP: pages, retries, waiting for rate limits. The token never leaves this module
except in the request's header: not in a log, its own or a library's, not in an error, even if the
server says it back.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import requests
from github import Auth, Github, GithubException, GithubRetry, RateLimitExceededException
from github.Issue import Issue
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
_INSTALLATION: Final = "ghs_"
"""How the tokens of jobs and apps begin; REST does not say whose they are, GraphQL does."""
_VIEWER: Final = "query { viewer { databaseId } }"
_SHOWN: Final = 300
_HIDDEN: Final = "***"
_REQUESTS: Final = logging.getLogger("github.Requester")
"""Where PyGithub logs what it sent and what came back."""


class _Discretion(logging.Filter):
    """Lets everything be logged but a secret."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        """Black it out."""
        shown = record.getMessage()
        if (hidden := self._redact(shown)) != shown:
            record.msg, record.args = hidden, ()
        return True


@contextmanager
def discreet(logger: logging.Logger, redact: Callable[[str], str]) -> Iterator[None]:
    """Within the block, let a logger say nothing that ``redact`` takes out of a text."""
    discretion = _Discretion(redact)
    logger.addFilter(discretion)
    try:
        yield
    finally:
        logger.removeFilter(discretion)


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    """How to reach GitHub.

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
        return f"RepositoryAccess(api={self.api!r})"

    def redact(self, text: str) -> str:
        """Take the token out of a text."""
        return text.replace(self.token, _HIDDEN) if self.token else text


class GitHubClient:
    """A client of GitHub for one thing there.

    What ``github``, PyGithub's client, raises is turned into words within ``errors``.

    Args:
        name: What is visited, for messages.
        retried: Methods that are sent again when the server fails.
        hints: What a status of GitHub's may mean here.
    """

    def __init__(
        self,
        access: RepositoryAccess,
        name: str,
        retried: Collection[str],
        hints: Mapping[int, str],
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
        """Turn what the library raises into one line without the token.

        Raises:
            GithubError: GitHub refuses, or cannot be reached.
        """
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
