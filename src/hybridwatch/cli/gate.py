"""``hybridwatch gate``: from a comparison to pass or fail, for a script to act on."""

import json
from pathlib import Path

import click

from hybridwatch.analysis.gate import GateResult, gate, is_sure
from hybridwatch.cli.sides import RECORDS_HELP, report_for, takes_records
from hybridwatch.views.jsonform import gate_to_json
from hybridwatch.views.sentence import headline, line_of, plural

_BAD_NEWS = 1


@click.command(
    "gate",
    help="Pass or fail: exit status 1 on a regression that stands under Holm's control, a missing "
    f"or a failed metric.\n\n{RECORDS_HELP}",
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
            mark = "" if is_sure(comparison, report) else "warning: "
            click.echo(f"  {mark}{line_of(comparison)}")
        click.echo(f"{_said(result)}: {headline(report)}")
    if not result.passed:
        raise click.exceptions.Exit(_BAD_NEWS)


def _said(result: GateResult) -> str:
    if not result.passed:
        return "fail"
    return f"pass with {plural(len(result.warnings), 'warning')}" if result.warnings else "pass"
