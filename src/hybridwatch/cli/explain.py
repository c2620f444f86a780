"""``hybridwatch explain``: a stored verdict, computed again from its records and laid open."""

import shlex
from pathlib import Path

import click

from hybridwatch.analysis.verdict import Comparison, Report
from hybridwatch.cli import completion
from hybridwatch.cli.options import examples, print_json, takes_results
from hybridwatch.cli.program import program, with_results
from hybridwatch.cli.terminal import Console
from hybridwatch.errors import ComparisonError
from hybridwatch.orchestration.nightly.judging import replay
from hybridwatch.records.store import find_verdict
from hybridwatch.reports.explanation import (
    print_explanation,
    print_reasons,
    print_replay,
    replay_to_json,
)
from hybridwatch.reports.table import heading
from hybridwatch.system.console_text import say

_DIFFERS = 1


@click.command(
    "explain",
    epilog=examples(
        "hybridwatch explain latest",
        'hybridwatch explain latest "ttft p99"',
    ),
)
@click.argument("verdict", shell_complete=completion.verdicts)
@click.argument("metric", required=False)
@takes_results("Folder in which ids and the records of a verdict are looked up.")
@click.option("--all", "everything", is_flag=True, help="Show every number of every comparison.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(
    *, verdict: str, metric: str | None, results: Path, everything: bool, as_json: bool
) -> None:
    """Compute a stored VERDICT again from its records and show the steps that led to it.

    VERDICT is a file under results/verdicts, the beginning of the last part of its name or of a
    run's id, or "latest". `hybridwatch run` with two builds stores a verdict, and so does
    `hybridwatch compare --save`. The worst comparisons get a sentence each. METRIC, such as ttft or
    "ttft p99", shows every number of that one; --all shows every number of all.

    The exit status is 0 only if the same records give the whole verdict again, bit for bit.
    Otherwise it is 1, and the output lists what differs and what has changed since.
    """
    path = find_verdict(results, verdict)
    judged, found = replay(path, results)
    chosen = _chosen(judged.report, metric)
    if as_json:
        print_json(replay_to_json(found, judged.report, chosen))
    else:
        console = Console()
        console.print(heading(judged.report))
        if metric is None and not everything:
            print_reasons(judged.report, console)
        else:
            sides = judged.baseline.one_side, judged.contender.one_side
            for comparison in chosen:
                print_explanation(comparison, judged.report, sides, judged.parameters, console)
        print_replay(path, found, judged.report, console)
        if metric is None and not everything:
            words = f"{program()} explain {shlex.quote(verdict)}{with_results(results)}"
            say(f"in full: {words} METRIC, or --all")
    if not found.same:
        raise click.exceptions.Exit(_DIFFERS)


def _chosen(report: Report, metric: str | None) -> tuple[Comparison, ...]:
    if metric is None:
        return report.comparisons
    chosen = tuple(
        comparison
        for comparison in report.comparisons
        if metric in {comparison.metric.id, f"{comparison.metric.id} {comparison.statistic}"}
    )
    if not chosen:
        there = ", ".join(dict.fromkeys(c.metric.id for c in report.comparisons)) or "none"
        raise ComparisonError(f"{metric}: expected a metric of this verdict, which has {there}")
    return chosen
