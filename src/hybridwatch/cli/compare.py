"""``hybridwatch compare``: every verdict between two sides, as a table or as JSON."""

import json
from pathlib import Path

import click
from rich.console import Console

from hybridwatch.cli.sides import RECORDS_HELP, report_for, takes_records
from hybridwatch.views.jsonform import to_json
from hybridwatch.views.table import print_table

_BAD_NEWS = 1


@click.command("compare", help=f"Compare two sides and show every verdict.\n\n{RECORDS_HELP}")
@takes_records
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(*, records: tuple[str, ...], results: Path, as_json: bool) -> None:
    """Compare, print, and leave with 1 on bad news."""
    report = report_for(records, results)
    if as_json:
        click.echo(json.dumps(to_json(report), indent=2, allow_nan=False))
    else:
        print_table(report, Console())
    if report.bad_news:
        raise click.exceptions.Exit(_BAD_NEWS)
