"""How a verb gets at a pull request: an extra package, and two variables of the environment."""

import os
import re
from typing import TYPE_CHECKING, Any, Final

import click

from hybridwatch.errors import GithubError, HybridwatchError

if TYPE_CHECKING:
    from hybridwatch.integrations.github.client import PullRequest, RepositoryAccess

TOKEN: Final = "GITHUB_TOKEN"  # noqa: S105 (the variable's name)
API: Final = "GITHUB_API_URL"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


def fitting(pattern: re.Pattern[str], wanted: str) -> Any:
    """Make the type of an option whose text has a form."""

    def convert(text: str) -> str:
        if not pattern.fullmatch(text):
            raise click.BadParameter(f"expected {wanted}, found {text[:80]!r}")
        return text

    return click.types.FuncParamType(convert)


REPOSITORY: Final = fitting(_REPOSITORY, "OWNER/NAME")
"""The type of an option that names a repository on GitHub."""


def access(verb: str, *, writes: bool) -> "RepositoryAccess":
    """Say how to get into GitHub.

    Args:
        verb: Who asks, for messages.
        writes: Whether something is to be written, which takes a token.

    Raises:
        HybridwatchError: PyGithub is not installed.
        GithubError: A token is needed and there is none.
    """
    # PyGithub is an extra, and takes a second to load.
    try:
        from hybridwatch.integrations.github.client import PUBLIC_API, RepositoryAccess
    except ModuleNotFoundError as error:
        raise HybridwatchError(
            f"{verb}: GitHub needs the Python module {error.name!r}, which is not installed "
            'here: pip install "hybridwatch[github]"'
        ) from error
    token = os.environ.get(TOKEN, "")
    if writes and not token:
        raise GithubError(f"{TOKEN}: expected a token in the environment, found none")
    return RepositoryAccess(token, os.environ.get(API) or PUBLIC_API)


def pull_request(verb: str, repository: str, number: int, *, writes: bool) -> "PullRequest":
    """Open a pull request.

    Args:
        verb: As for ``access``.
        repository: ``owner/name``.
        number: Of the pull request.
        writes: As for ``access``.

    Raises:
        HybridwatchError: PyGithub is not installed.
        GithubError: A token is needed and there is none, or GitHub refuses.
    """
    client = access(verb, writes=writes)
    from hybridwatch.integrations.github.client import PullRequest

    return PullRequest(client, repository, number)
