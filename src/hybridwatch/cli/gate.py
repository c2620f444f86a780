"""``hybridwatch gate``: from comparisons to pass or fail, for a script to act on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from hybridwatch.analysis.change_review import ChangeReview
from hybridwatch.analysis.freshness import age_text
from hybridwatch.analysis.gate import GateResult, gate
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.verdict import Report
from hybridwatch.analysis.wording.cause_text import deaths_in
from hybridwatch.analysis.wording.labels import plural
from hybridwatch.cli.options import examples, print_json, write_file
from hybridwatch.cli.sides import MANY_HELP, RECORDS_HELP, may_take_records, takes_baseline
from hybridwatch.cli.step_summary import add_to_summary
from hybridwatch.history.judge import SideOptions
from hybridwatch.history.newest_runs import findings_for
from hybridwatch.orchestration.nightly.checkout import takes_policy
from hybridwatch.reports.alert_text import gate_lines
from hybridwatch.reports.escape import one_line
from hybridwatch.reports.github_actions import annotations, without_commands
from hybridwatch.reports.jsonform import findings_to_json, gate_to_json
from hybridwatch.reports.pull_request import SUMMARY_LIMIT, render, render_title
from hybridwatch.reports.sentence import headline, seen_by
from hybridwatch.system.console_text import say

_BAD_NEWS = 1


@click.command(
    "gate",
    help="Pass or fail. The exit status is 1 on a regression that stands under Holm's control and "
    "that the policy blocks, on an expectation that is broken on both sides and not known to the "
    "policy, and on anything missing or failed. A known-bad control passes when "
    "its bug was caught and the healthy engine was clean.\n\n"
    f"{RECORDS_HELP}\n\n{MANY_HELP}",
    epilog=examples(
        "hybridwatch gate latest",
        "hybridwatch gate --results results --policy ci/gate.toml",
        "hybridwatch gate --results results --junit gate.xml",
        "hybridwatch gate --results results --github",
    ),
)
@may_take_records
@takes_baseline
@takes_policy
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the answer as JUnit XML, a test for each comparison.",
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the answer as Markdown, for an annotation of Buildkite.",
)
@click.option(
    "--github",
    is_flag=True,
    help="In a step of GitHub Actions: also print annotations, and add to the job's summary.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (docs/json.md).")
def command(
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
    result = _result(findings, one=bool(records))
    if junit is not None:
        from hybridwatch.reports.junit import to_junit  # most gates write none

        write_file(junit, to_junit(findings))
    if markdown is not None:
        write_file(markdown, render(findings, limit=SUMMARY_LIMIT).text.encode())
    if as_json:
        document = _one_to_json(result, findings) if records else findings_to_json(result, findings)
        print_json(document)
    elif github:
        say(*without_commands(_lines(result, findings)), *annotations(findings))
        add_to_summary(render(findings, limit=SUMMARY_LIMIT).text)
    else:
        say(*_lines(result, findings))
    if not result.passed:
        raise click.exceptions.Exit(_BAD_NEWS)


def _result(findings: ChangeReview, *, one: bool) -> GateResult:
    if one and findings.reports and not findings.left_out:
        return gate(findings.reports[0], findings.policy)
    return findings.gate


def _one_to_json(result: GateResult, findings: ChangeReview) -> dict[str, Any]:
    if findings.controls:
        (control,) = findings.controls
        report = control.report
    else:
        (report,), control = findings.reports, None
    return gate_to_json(result, report, findings.policy, findings.compute_age(report), control)


def _lines(result: GateResult, findings: ChangeReview) -> Iterator[str]:
    yield from (f"  {line}" for line in _details(findings))
    yield f"{_answer(result)}: {render_title(findings)}"


def _details(findings: ChangeReview) -> Iterator[str]:
    for control in findings.controls:
        by = seen_by(control)
        yield f"{control.scenario}: {control.detection.value}{by and f' by {by}'}"
        for death in () if control.ok else deaths_in(control.report):
            yield f"  {one_line(f'{death.trial.place}: {death.reason}')}"
    for report, name in zip(findings.reports, findings.names, strict=True):
        yield f"judged {name}: {_age(findings, report)}run {report.contender.run_id}"
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


def _age(findings: ChangeReview, report: Report) -> str:
    age = findings.compute_age(report)
    return "" if age is None else f"{age_text(age)} old, "


def _answer(result: GateResult) -> str:
    if not result.passed:
        return "fail"
    return f"pass with {plural(len(result.warnings), 'warning')}" if result.warnings else "pass"
