"""How a verb gets at a pull request, and at the page and the summary of a job; ``suspects``."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hybridwatch.cli.options import FILE, print_json, takes_json, verb
from hybridwatch.cli.terminal import say
from hybridwatch.errors import ExportError, GithubError, HybridwatchError
from hybridwatch.orchestration.bisect.journal import SearchAnswer, read_answer

if TYPE_CHECKING:
    from hybridwatch.integrations.github.client import PullRequest, RepositoryAccess

TOKEN: Final = "GITHUB_TOKEN"  # noqa: S105 (the variable's name)
API: Final = "GITHUB_API_URL"
SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable in which a job names the file of its summary."""
_RUN: Final = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")


def fitting(pattern: str, wanted: str) -> Any:
    """Make the type of an option whose text has a form."""

    def convert(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise click.BadParameter(f"expected {wanted}, found {text[:80]!r}")
        return text

    return click.types.FuncParamType(convert)


REPOSITORY: Final = fitting(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", "OWNER/NAME")
"""The type of an option that names a repository on GitHub."""

takes_repo: Final = click.option(
    "--repo", type=REPOSITORY, metavar="OWNER/NAME", required=True, help="On GitHub."
)
"""Gives a verb the argument ``repo``."""


def access(verb: str, *, writes: bool) -> "RepositoryAccess":
    """Say how ``verb`` gets into GitHub; to write something takes a token."""
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
    """Open a pull request of a repository ``owner/name`` for a verb (``access``)."""
    client = access(verb, writes=writes)
    from hybridwatch.integrations.github.client import PullRequest

    return PullRequest(client, repository, number)


def run_address() -> str:
    """Give the address of the page of this run; empty outside of GitHub Actions."""
    server, repository, run = (os.environ.get(name) for name in _RUN)
    return f"{server}/{repository}/actions/runs/{run}" if server and repository and run else ""


def add_to_summary(text: str) -> bool:
    """Add Markdown to the summary of the job, and say whether there is one."""
    place = os.environ.get(SUMMARY)
    if not place:
        return False
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ExportError(
            f"{SUMMARY}: {place}: cannot be written: {error.strerror or error}"
        ) from error
    return True


@verb("suspects", "answer.json --repo OWNER/NAME --dry-run", "answer.json --repo OWNER/NAME")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@takes_repo
@click.option("--dry-run", is_flag=True, help="Print the Markdown and post nothing.")
@takes_json()
def suspects_command(*, files: tuple[Path, ...], repo: str, dry_run: bool, as_json: bool) -> None:
    """Comment, once, on the pull request that a search has found to be the cause.

    FILE is what `hybridwatch bisect --json` printed. Only what a new measurement confirmed is
    reported. If a few commits could not be distinguished, each of their pull requests gets it.
    """
    rows = [row for file in files for row in _rows(file, read_answer(file), repo, dry_run=dry_run)]
    if as_json:
        print_json({"schema_version": 1, "suspects": rows})
    for row in () if as_json else rows:
        place = "" if row["pull_request"] is None else f"{repo}#{row['pull_request']}: "
        say(f"{row['commit'] or row['file']}: {place}{row['done']}")


def _rows(file: Path, found: SearchAnswer, repo: str, *, dry_run: bool) -> Iterator[dict[str, Any]]:
    client = access("suspects", writes=not dry_run)
    from hybridwatch.integrations.github.suspicion import hindrance, notify_authors, suspicion_text

    def row(commit: str | None, number: int | None, done: str) -> dict[str, Any]:
        return {"file": str(file), "commit": commit, "pull_request": number, "done": done}

    if why := hindrance(found):
        yield row(None, None, f"no comment: {why}")
    elif dry_run:
        for suspect in found.suspects:
            click.echo(f"{suspicion_text(found, suspect)}\n", err=True)
            yield row(suspect.name, None, "would get a comment")
    else:
        for one in notify_authors(client, repo, found):
            yield row(one.suspect.name, one.number, one.done)
