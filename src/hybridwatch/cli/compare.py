"""``hybridwatch compare``: every verdict between two sides, as a table or as JSON."""

from pathlib import Path

import click

from hybridwatch.analysis.wording.report_json import comparison_to_json
from hybridwatch.cli.options import examples, print_json
from hybridwatch.cli.program import program
from hybridwatch.cli.sides import RECORDS_HELP, takes_baseline, takes_records
from hybridwatch.cli.terminal import Console
from hybridwatch.history.judge import SideOptions, judge_named
from hybridwatch.history.known_bad import known_bad_in
from hybridwatch.orchestration.nightly.judging import save
from hybridwatch.reports.sentence import bugs_caught
from hybridwatch.reports.table import print_table
from hybridwatch.system.console_text import say

_BAD_NEWS = 1


@click.command(
    "compare",
    help=f"Compare two sides and show every verdict.\n\n{RECORDS_HELP}",
    epilog=examples(
        "hybridwatch compare latest",
        "hybridwatch compare a5fa7e47 7cbdb7a2",
        'hybridwatch compare "latest#0" "7cbdb7a2#0" --json',
    ),
)
@takes_records
@takes_baseline
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
@click.option(
    "--save",
    "saved",
    is_flag=True,
    help="Store the verdict under the results folder, for `hybridwatch explain`.",
)
def command(
    *, records: tuple[str, ...], results: Path, options: SideOptions, as_json: bool, saved: bool
) -> None:
    """Compare, print, and leave with 1 on bad news."""
    judged = judge_named(records, results, options=options)
    report = judged.report
    # Stored first: the reader of the answer may act on the file.
    path = save(results, judged) if saved else None
    if as_json:
        print_json(comparison_to_json(report))
    else:
        print_table(report, Console())
        if control := known_bad_in(report):
            click.echo(f"A known-bad control, red on purpose: {bugs_caught([control])}.")
    if path is not None:
        say(f"verdict: {path}", f"next:    {program()} explain {path}", err=as_json)
    if report.bad_news:
        raise click.exceptions.Exit(_BAD_NEWS)
