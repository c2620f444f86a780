"""``hybridwatch gate``: from a comparison to pass or fail, for a script to act on."""

import json
from pathlib import Path

import click

from hybridwatch.analysis.gate import gate
from hybridwatch.cli.sides import RECORDS_HELP, report_for, takes_records
from hybridwatch.views.jsonform import gate_to_json
from hybridwatch.views.sentence import headline, line_of

_BAD_NEWS = 1


@click.command(
    "gate",
    help=f"Pass or fail: exit status 1 on a regression, a missing or a failed metric.\n\n"
    f"{RECORDS_HELP}",
)
@takes_records
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(*, records: tuple[str, ...], results: Path, as_json: bool) -> None:
    """Judge, print, and leave with 1 unless the gate passed."""
    report = report_for(records, results)
    result = gate(report)
    if as_json:
        click.echo(json.dumps(gate_to_json(result, report), indent=2, allow_nan=False))
    else:
        for comparison in report.bad_news:
            click.echo(f"  {line_of(comparison)}")
        click.echo(f"{'pass' if result.passed else 'fail'}: {headline(report)}")
    if not result.passed:
        raise click.exceptions.Exit(_BAD_NEWS)
