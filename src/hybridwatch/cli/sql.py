"""``hybridwatch sql``: a question that no page answers."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from hybridwatch.cli.options import examples, require_folder, takes_results
from hybridwatch.cli.terminal import Console
from hybridwatch.database.connection import ask
from hybridwatch.database.queries import open_index
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.stacked import StackedTable
from hybridwatch.system.plain_text import csv_cell


@click.command(
    "sql",
    epilog=examples(
        'hybridwatch sql "SELECT verdict, count(*) FROM verdict GROUP BY verdict"',
        'hybridwatch sql "SELECT * FROM run" --csv',
    ),
)
@click.argument("statement")
@takes_results("Folder whose records the question is about.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
@click.option("--json", "form", flag_value="json", help="Print one JSON array (docs/json.md).")
def command(statement: str, results: Path, form: str | None) -> None:
    """Run one SQL statement on stored results.

    Records that are new are read first, as by `hybridwatch index`. The statement can change
    nothing. docs/database.md draws the tables and has examples; what SQL can say depends on the
    database, SQLite or PostgreSQL.
    """
    require_folder(results)
    names, rows = ask(open_index(results).database, statement)
    if form == "json":
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
    elif form == "csv":
        click.echo(_csv(names, rows), nl=False)
    else:
        _print(names, rows)


def _csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _print(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = StackedTable(box=None, pad_edge=False)
    for name in names:
        table.add_column(Text(one_line(name)))
    for row in rows:
        table.add_row(*(Text("" if value is None else one_line(str(value))) for value in row))
    Console().print(table)
