"""``hybridwatch records``: which runs are stored, the newest first."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD

from hybridwatch.cli import completion
from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.cli.terminal import Console
from hybridwatch.errors import RecordError
from hybridwatch.records.file_parts import NO_DIGEST
from hybridwatch.records.role import Role, name_role, side_names
from hybridwatch.records.run import Run
from hybridwatch.records.store import Stored, list_records, read_run
from hybridwatch.reports.jsonform import ALONE, RunFilter, records_to_json
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.console_text import as_text, say

_NAMED: Final = 4
"""Records without a digest that are named."""
_SHOWN: Final = 20
_ROLES: Final = {
    Role.KNOWN_BAD: "control",
    Role.A_A: "A/A",
    Role.PLANTED: "planted fault",
}
"""Runs of which the baseline says it all: the other side is like it but for the role."""


@click.command(
    "records",
    epilog=examples(
        "hybridwatch records",
        "hybridwatch records --scenario smoke --role known-bad",
        "hybridwatch records --build cpu-0.31.0 --all --json",
    ),
)
@click.option(
    "--scenario",
    metavar="SCENARIO",
    shell_complete=completion.scenarios,
    help="Only this scenario, or this group.",
)
@click.option(
    "--build",
    metavar="BUILD",
    shell_complete=completion.builds,
    help="Only runs with a side whose label begins with this.",
)
@click.option("--testbed", help="Only this machine; the beginning of its id is enough.")
@click.option(
    "--role",
    type=click.Choice([*(role.value for role in Role), ALONE]),
    help="Only runs with this purpose; alone means a run of one build.",
)
@takes_results("Folder whose records are listed.")
@click.option("--all", "everything", is_flag=True, help=f"List all, not only the newest {_SHOWN}.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(*, results: Path, everything: bool, as_json: bool, **wish: Any) -> None:
    """List the stored runs, the newest first.

    The first column is the id of a run; every verb that takes a RECORD accepts it.
    """
    if not results.is_dir():
        raise RecordError(f"{results}: no such folder; name one with --results")
    broken: dict[str, str] = {}
    wanted = RunFilter(**{name: value or "" for name, value in wish.items()})
    found = _read(results, wanted.fits_run, broken)
    shown = list(found if everything else itertools.islice(found, _SHOWN + 1))
    more = not everything and len(shown) > _SHOWN
    shown = shown if everything else shown[:_SHOWN]
    if as_json:
        print_json(records_to_json(shown, broken, more=more))
        return
    if shown:
        Console().print(_table(shown))
        _print_undigested(shown)
    else:
        say(f"{results}: no such record.")
    if more:
        click.echo("Older ones: --all")
    for path, why in broken.items():
        say(f"{path}: {why}", err=True)


def _read(results: Path, fits: Callable[[Run], bool], broken: dict[str, str]) -> Iterator[Stored]:
    """Read the wanted runs, the newest first, and note what cannot be read on the way."""
    for path in reversed(list_records(results)):
        try:
            run = read_run(path, bulk=False)
        except RecordError as error:
            broken[str(path)] = str(error).removeprefix(f"{path}: ")
        else:
            if fits(run):
                yield Stored(path, run)


def _table(shown: Sequence[Stored]) -> StackedTable:
    table = StackedTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for title in ("run", "measured (UTC)", "scenario"):
        table.add_column(title, no_wrap=True)
    table.add_column("builds", overflow="fold")
    for stored in shown:
        run = stored.run
        when = run.started_at.astimezone(UTC)
        cells = (run.id, f"{when:%Y-%m-%d %H:%M}", run.scenario.id, _builds(run))
        table.add_row(*map(as_text, cells))
    return table


def _print_undigested(shown: Sequence[Stored]) -> None:
    """Name the records in which damage need not show."""
    lacking = [stored.run.id for stored in shown if stored.run.sha256 is None]
    if lacking:
        more = len(lacking) - _NAMED
        others = f" and {more} more" if more > 0 else ""
        click.echo(f"{NO_DIGEST}, so damage may go unseen: {', '.join(lacking[:_NAMED])}{others}")


def _builds(run: Run) -> str:
    labels = [build.label for build in run.builds]
    role = name_role(*run.builds, known_bad=run.known_bad) if len(labels) == 2 else Role.COMPARISON
    if role in _ROLES:
        return f"{_ROLES[role]}, {run.builds[0].name}"
    return " \u2192 ".join(side_names(labels))
