"""``hybridwatch compare``, and the records and sides that verbs of verdicts take."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from hybridwatch.analysis.wording.report_json import comparison_to_json
from hybridwatch.cli import completion
from hybridwatch.cli.options import (
    VerbFunction,
    VerbOption,
    leave,
    print_json,
    program,
    takes_json,
    takes_results,
    verb,
)
from hybridwatch.cli.terminal import Console, say
from hybridwatch.history.judge import PINNED, SideOptions, judge_named, known_bad_in, save
from hybridwatch.reports.sentence import bugs_caught
from hybridwatch.reports.table import print_table

RECORDS_HELP: Final = """RECORD is a record file, the id of a run, or "latest"; ids and "latest" are
looked up in the results folder.
One RECORD with two builds compares these two. Two RECORDs are BASELINE and CONTENDER; for a record
with two builds add the side: RECORD#0 or RECORD#1. One RECORD with one build, or one side, is
compared with the baseline that results/baselines.toml pins for its scenario and testbed; where none
is pinned, only what its scenario expects is judged: contracts and answers."""

MANY_HELP: Final = """Without RECORD, the newest record of every scenario, testbed and pair of
builds in the folder is judged; a record of one build is compared with the pinned baseline, and
without one held against what its scenario expects. A scenario that the policy expects is missing if
it has no record, or only one older than max_age_days."""

ANY_TESTBEDS: Final = SideOptions(announce=functools.partial(say, err=True))
"""For verbs without ``takes_baseline``: both sides are shown, whichever machines measured them."""


def takes_baseline(verb: VerbFunction) -> VerbFunction:
    """Give a verb the argument ``options``; it refuses to compare testbeds by itself."""

    @functools.wraps(verb)
    def wrapped(*, baseline: str | None, across_testbeds: bool, **others: Any) -> Any:
        options = replace(
            ANY_TESTBEDS, pinned=baseline is not None, across_testbeds=across_testbeds
        )
        return verb(options=options, **others)

    wrapped = click.option(
        "--across-testbeds",
        is_flag=True,
        help="Compare sides even if different machines measured them.",
    )(wrapped)
    return click.option(
        "--baseline",
        type=click.Choice([PINNED]),
        help="Compare with the pinned baseline, even if the record holds two builds.",
    )(wrapped)


def takes_records(*, required: bool) -> VerbOption:
    """Give a verb the arguments ``records``, which may be empty, and ``results``."""
    argument = click.argument(
        "records",
        nargs=-1,
        required=required,
        metavar="RECORD [RECORD]" if required else "[RECORD [RECORD]]",
        shell_complete=completion.records,
    )
    results = takes_results("Folder in which run ids are looked up.")
    return lambda verb: argument(results(verb))


@verb(
    "compare",
    "latest",
    "a5fa7e47 7cbdb7a2",
    '"latest#0" "7cbdb7a2#0" --json',
    text=f"Compare two sides and show every verdict.\n\n{RECORDS_HELP}",
)
@takes_records(required=True)
@takes_baseline
@takes_json()
@click.option(
    "--save",
    "saved",
    is_flag=True,
    help="Store the verdict under the results folder, for `hybridwatch explain`.",
)
def compare_command(
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
    leave(bad_news=report.bad_news)
