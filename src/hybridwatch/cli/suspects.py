"""``hybridwatch suspects``: the author of a change hears once what it did."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from hybridwatch.cli.github_access import REPOSITORY, access
from hybridwatch.cli.options import examples, print_json
from hybridwatch.orchestration.bisect.journal import SearchAnswer, read_answer
from hybridwatch.system.console_text import say

_SCHEMA_VERSION = 1


@click.command(
    "suspects",
    epilog=examples(
        "hybridwatch suspects answer.json --repo OWNER/NAME --dry-run",
        "hybridwatch suspects answer.json --repo OWNER/NAME",
    ),
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE...",
)
@click.option("--repo", type=REPOSITORY, metavar="OWNER/NAME", required=True, help="On GitHub.")
@click.option("--dry-run", is_flag=True, help="Print the Markdown and post nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(*, files: tuple[Path, ...], repo: str, dry_run: bool, as_json: bool) -> None:
    """Comment, once, on the pull request that a search has found to be the cause.

    FILE is what `hybridwatch bisect --json` printed. Only what was confirmed by a new measurement
    is told. If a few commits could not be told apart, each of their pull requests hears it.
    """
    rows = [row for file in files for row in _rows(file, read_answer(file), repo, dry_run=dry_run)]
    if as_json:
        print_json({"schema_version": _SCHEMA_VERSION, "suspects": rows})
    for row in () if as_json else rows:
        place = "" if row["pull_request"] is None else f"{repo}#{row['pull_request']}: "
        say(f"{row['commit'] or row['file']}: {place}{row['done']}")


def _rows(file: Path, found: SearchAnswer, repo: str, *, dry_run: bool) -> Iterator[dict[str, Any]]:
    client = access("suspects", writes=not dry_run)
    from hybridwatch.integrations.github.suspicion import hindrance, suspicion_text, tell_authors

    def row(commit: str | None, number: int | None, done: str) -> dict[str, Any]:
        return {"file": str(file), "commit": commit, "pull_request": number, "done": done}

    if why := hindrance(found):
        yield row(None, None, f"nobody is told: {why}")
    elif dry_run:
        for suspect in found.suspects:
            click.echo(f"{suspicion_text(found, suspect)}\n", err=True)
            yield row(suspect.name, None, "would be told")
    else:
        for one in tell_authors(client, repo, found):
            yield row(one.suspect.name, one.number, one.done)
