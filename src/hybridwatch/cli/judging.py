"""``hybridwatch gate``, ``explain`` and ``detect``: verdicts, laid open."""

import io
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hybridwatch.analysis.change_point import History
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.analysis.change_point.noise import two_levels
from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.freshness import age_text
from hybridwatch.analysis.gate import GateResult, gate
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Comparison, Report
from hybridwatch.analysis.wording.cause_text import deaths_in
from hybridwatch.analysis.wording.numbers import plural
from hybridwatch.cli import completion
from hybridwatch.cli.compare import MANY_HELP, RECORDS_HELP, takes_baseline, takes_records
from hybridwatch.cli.github_access import add_to_summary
from hybridwatch.cli.options import (
    FILE,
    leave,
    print_json,
    program,
    takes_json,
    takes_results,
    verb,
    with_results,
    write_file,
)
from hybridwatch.cli.terminal import Console, say
from hybridwatch.errors import ComparisonError, HistoryError
from hybridwatch.formats.read.history_csv import WrittenSeries, read_histories
from hybridwatch.history.judge import SideOptions, replay
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.metrics import Direction, Kind
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.records.store import find_verdict
from hybridwatch.reports.alert_text import gate_lines
from hybridwatch.reports.detection import DetectionReport, detections_to_json, print_detections
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.explanation import (
    print_explanation,
    print_reasons,
    print_replay,
    replay_to_json,
)
from hybridwatch.reports.github_actions import annotations, without_commands
from hybridwatch.reports.jsonform import findings_to_json, gate_to_json
from hybridwatch.reports.pull_request import SUMMARY_LIMIT, render, render_title
from hybridwatch.reports.sentence import clearest_sign, headline
from hybridwatch.reports.table import heading


@verb(
    "gate",
    "latest",
    "--results results --policy ci/gate.toml",
    "--results results --junit gate.xml",
    "--results results --github",
    text="Pass or fail. The exit status is 1 on a regression that stands under Holm's control and "
    "that the policy blocks, on an expectation that is broken on both sides and not known to the "
    "policy, and on anything missing or failed. A known-bad control passes when "
    "its bug was caught and the healthy engine was clean.\n\n"
    f"{RECORDS_HELP}\n\n{MANY_HELP}",
)
@takes_records(required=False)
@takes_baseline
@takes_policy
@click.option(
    "--junit",
    type=FILE,
    metavar="FILE",
    help="Also write the answer as JUnit XML, a test for each comparison.",
)
@click.option(
    "--markdown",
    type=FILE,
    metavar="FILE",
    help="Also write the answer as Markdown, for an annotation of Buildkite.",
)
@click.option(
    "--github",
    is_flag=True,
    help="In a step of GitHub Actions: also print annotations, and add to the job's summary.",
)
@takes_json()
def gate_command(
    *,
    records: tuple[str, ...],
    results: Path,
    options: SideOptions,
    policy: Policy,
    junit: Path | None,
    markdown: Path | None,
    github: bool,
    as_json: bool,
) -> None:
    """Judge, print, and leave with 1 unless the gate passed."""
    if github and as_json:
        raise click.UsageError(
            "--github prints commands where --json prints its object: call twice"
        )
    findings = findings_for(records, results, policy, options)
    result = findings.gate
    if records and findings.reports and not findings.left_out:
        result = gate(findings.reports[0], findings.policy)
    if junit is not None:
        from hybridwatch.reports.junit import to_junit  # most gates write none

        write_file(junit, to_junit(findings))
    if markdown is not None:
        write_file(markdown, render(findings, limit=SUMMARY_LIMIT).text.encode())
    if as_json:
        print_json((_one_to_json if records else findings_to_json)(result, findings))
    elif github:
        say(*without_commands(_gate_lines(result, findings)), *annotations(findings))
        add_to_summary(render(findings, limit=SUMMARY_LIMIT).text)
    else:
        say(*_gate_lines(result, findings))
    leave(bad_news=not result.passed)


def _one_to_json(result: GateResult, findings: ChangeReview) -> dict[str, Any]:
    if findings.controls:
        (control,) = findings.controls
        report = control.report
    else:
        (report,), control = findings.reports, None
    return gate_to_json(result, report, findings.policy, findings.compute_age(report), control)


def _gate_lines(result: GateResult, findings: ChangeReview) -> Iterator[str]:
    yield from (f"  {line}" for line in _details(findings))
    warnings = f" with {plural(len(result.warnings), 'warning')}" if result.warnings else ""
    yield f"{f'pass{warnings}' if result.passed else 'fail'}: {render_title(findings)}"


def _details(findings: ChangeReview) -> Iterator[str]:
    for control in findings.controls:
        by = clearest_sign(control)
        yield f"{control.scenario}: {control.detection.value}{by and f' by {by}'}"
        for death in () if control.ok else deaths_in(control.report):
            yield f"  {one_line(f'{death.trial.place}: {death.reason}')}"
    for report, name in zip(findings.reports, findings.names, strict=True):
        age = findings.compute_age(report)
        old = "" if age is None else f"{age_text(age)} old, "
        yield f"judged {name}: {old}run {report.contender.run_id}"
    for absent in findings.absent:
        yield f"{absent.place}: {absent.reason}"
    for left_out in findings.left_out:
        yield f"warning: {left_out.place}: {left_out.reason}"
    for report in findings.incomparable:
        yield f"{findings.name_of(report)}: {headline(report)}"
    many = len(findings.reports) > 1
    for found in findings.causes:
        if not found.cause.is_better:
            yield from gate_lines(found, findings.policy, many=many)


@verb("explain", "latest", 'latest "ttft p99"')
@click.argument("verdict", shell_complete=completion.verdicts)
@click.argument("metric", required=False)
@takes_results("Folder in which ids and the records of a verdict are looked up.")
@click.option("--all", "everything", is_flag=True, help="Show every number of every comparison.")
@takes_json()
def explain_command(
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
    chosen, in_short = _chosen(judged.report, metric), metric is None and not everything
    if as_json:
        print_json(replay_to_json(found, judged.report, chosen))
    else:
        console = Console()
        console.print(heading(judged.report))
        if in_short:
            print_reasons(judged.report, console)
        else:
            sides = judged.baseline.one_side, judged.contender.one_side
            for comparison in chosen:
                print_explanation(comparison, judged.report, sides, judged.parameters, console)
        print_replay(path, found, judged.report, console)
        if in_short:
            words = f"{program()} explain {shlex.quote(verdict)}{with_results(results)}"
            say(f"in full: {words} METRIC, or --all")
    leave(bad_news=not found.same)


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


@verb("detect", "history.csv", "hybridwatch export --to csv --metric ttft | hybridwatch detect -")
@click.argument("file")
@click.option(
    "--better",
    type=click.Choice([direction.value for direction in Direction]),
    help="Which way is better, in place of the column better; lower where neither says.",
)
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    help="What the values are: exact counts have no noise, and proportions (from 0 to 1) change by "
    "a difference. Anything else changes by a ratio.",
)
@takes_json()
def detect_command(*, file: str, better: str | None, kind: str | None, as_json: bool) -> None:
    """Find the change points in a CSV FILE ("-" is standard input).

    The header names the columns time and value, series if there are several, digest where what was
    measured was defined again: each digest is a series, and better (lower or higher). The columns
    may be in any order, and others are ignored. A time is a number or a date such as
    2026-11-21T09:15:00Z; rows are in order of time. Rows of one series at one time are repeats of
    one run. A series has at most 1,000,000 times, and a value is at most 1e150 on either side of 0.

    A change is suspected from its first points on, and confirmed when more points support it. It
    lies between the times given, with 95 % confidence. The exit status is 1 when the last confirmed
    change of a series, or a drift after it, is for the worse.
    """
    known = None if kind is None else Kind(kind)
    detections = [
        DetectionReport(
            series,
            _examined(file, series, known),
            known,
            Direction(better) if better else series.better or Direction.LOWER,
        )
        for series in _read_history(file)
    ]
    if as_json:
        print_json(detections_to_json(detections))
    else:
        print_detections(detections, Console())
    leave(bad_news=any(detection.worse for detection in detections))


def _read_history(file: str) -> tuple[WrittenSeries, ...]:
    try:
        with click.open_file(file, "rb") as stream:
            # A byte order mark, as spreadsheets write it, is no part of the first column's name.
            lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            return read_histories(lines, file)
    except OSError as error:
        raise HistoryError(f"{file}: cannot be read: {error.strerror or error}") from error


def _examined(file: str, series: WrittenSeries, kind: Kind | None) -> History:
    try:
        found = examine(series.values, kind=kind, spreads=series.spreads)
    except HistoryError as error:
        where = file if series.name is None else f"{file}: series {series.name}"
        raise HistoryError(f"{where}: {error}") from error
    if kind in {Kind.EXACT, Kind.PROPORTION}:
        return found
    two = two_levels(series.repeats or [(value,) for value in series.values], found)
    return replace(found, doubts=(*found.doubts, two.text("{:.4g}".format))) if two else found
