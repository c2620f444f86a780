"""``hybridwatch records``, ``index`` and ``sql``: the runs of a results folder and its database."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD
from rich.text import Text

from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli import completion
from hybridwatch.cli.options import print_json, takes_json, takes_results, verb
from hybridwatch.cli.terminal import Console, as_text, file_progress, say
from hybridwatch.database.connection import ask
from hybridwatch.database.queries import Index, open_index
from hybridwatch.errors import RecordError
from hybridwatch.records.file_parts import NO_DIGEST
from hybridwatch.records.identity import Role, name_role, side_names
from hybridwatch.records.run import Run
from hybridwatch.records.store import Stored, list_records, read_run
from hybridwatch.records.store.layout import require_folder
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.jsonform import ALONE, RunFilter, records_to_json
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.plain_text import csv_cell

_NAMED: Final = 4
"""Records without a digest that are named."""
_SHOWN: Final = 20
_ROLES: Final = {Role.KNOWN_BAD: "control", Role.A_A: "A/A", Role.PLANTED: "planted fault"}
"""Runs of which the baseline says it all: the other side is like it but for the role."""


@verb("records", "", "--scenario smoke --role known-bad", "--build cpu-0.31.0 --all --json")
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
@takes_json()
def records_command(*, results: Path, everything: bool, as_json: bool, **options: Any) -> None:
    """List the stored runs, the newest first.

    The first column is the id of a run; every verb that takes a RECORD accepts it.
    """
    require_folder(results)
    broken: dict[str, str] = {}
    wanted = RunFilter(**{name: value or "" for name, value in options.items()})
    found = _read(results, wanted.fits_run, broken)
    shown = list(found if everything else itertools.islice(found, _SHOWN))
    more = next(found, None) is not None
    if as_json:
        print_json(records_to_json(shown, broken, more=more))
        return
    if shown:
        Console().print(_table(shown))
        # Of records without a digest damage need not show.
        if lacking := [stored.run.id for stored in shown if stored.run.sha256 is None]:
            others = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
            named = f"{', '.join(lacking[:_NAMED])}{others}"
            click.echo(f"{NO_DIGEST}, so damage may go unseen: {named}")
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
        run, when = stored.run, f"{stored.run.started_at.astimezone(UTC):%Y-%m-%d %H:%M}"
        table.add_row(*map(as_text, (run.id, when, run.scenario.id, _builds(run))))
    return table


def _builds(run: Run) -> str:
    labels = [build.label for build in run.builds]
    role = name_role(*run.builds, known_bad=run.known_bad) if len(labels) == 2 else Role.COMPARISON
    if role in _ROLES:
        return f"{_ROLES[role]}, {run.builds[0].name}"
    return " \u2192 ".join(side_names(labels))


@verb("index", "")
@takes_results("Folder whose records are read.")
@click.option("--rebuild", is_flag=True, help="Read every record again.")
@takes_json()
def index_command(results: Path, rebuild: bool, as_json: bool) -> None:
    """Update the index: the database of records, from which the dashboard reads.

    Only new records are read and judged. The dashboard does the same when it opens; a nightly run
    of this command saves that time. docs/database.md says what the database holds.
    """
    require_folder(results)
    with file_progress("records") as tell:
        index = open_index(results, tell, rebuild=rebuild)
    found = index_to_json(index)
    if as_json:
        print_json(found)
        return
    words = ("record", "value", "verdict")
    click.echo(", ".join(plural(index.counts[f"{word}s"], word) for word in words))
    for broken in found["unreadable"]:
        click.echo(f"{one_line(broken['record'])}: {one_line(broken['reason'])}", err=True)
    if not index.kept:
        click.echo("the database could not be written: records are read again each time", err=True)


def index_to_json(index: Index) -> dict[str, Any]:
    """Give what the index holds as plain JSON; fields as in ``docs/json.md``."""
    broken = index.broken()[["record", "reason"]].to_dict("records")
    return {"schema_version": 1, "kept": index.kept, **index.counts, "unreadable": broken}


@verb(
    "sql", '"SELECT verdict, count(*) FROM verdict GROUP BY verdict"', '"SELECT * FROM run" --csv'
)
@click.argument("statement")
@takes_results("Folder whose records the question is about.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
@click.option("--json", "form", flag_value="json", help="Print one JSON array (docs/json.md).")
def sql_command(statement: str, results: Path, form: str | None) -> None:
    """Run one SQL statement on stored results.

    Records that are new are read first, as by `hybridwatch index`. The statement can change
    nothing, and has two minutes. docs/database.md draws the tables and has examples; what SQL can
    say depends on the database, SQLite or PostgreSQL.
    """
    require_folder(results)
    names, rows = ask(open_index(results).database, statement)
    if form == "json":
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
    elif form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([csv_cell(value) for value in row] for row in rows)
        click.echo(text.getvalue(), nl=False)
    else:
        table = StackedTable(box=None, pad_edge=False)
        for name in names:
            table.add_column(Text(one_line(name)))
        for row in rows:
            table.add_row(*(Text("" if value is None else one_line(str(value))) for value in row))
        Console().print(table)
