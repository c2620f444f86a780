"""Judging many scenarios at once: the newest record of each, and those that are not there."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from hybridwatch.analysis.findings import Absent, Findings
from hybridwatch.analysis.policy import Policy
from hybridwatch.analysis.sight import is_control
from hybridwatch.analysis.verdict import Report
from hybridwatch.cli.known_bad import known_bad_in
from hybridwatch.cli.sides import PLAIN, Asked, report_for
from hybridwatch.engine.builds import home
from hybridwatch.errors import ComparisonError, RecordError
from hybridwatch.scenario.load import find
from hybridwatch.store import Stored, read_newest

MANY_HELP = """With no RECORD, the newest record of every scenario in the results folder is judged,
one of one build against the pinned baseline; scenarios that the policy expects and that have none
are missing."""


def findings_for(
    records: tuple[str, ...], results: Path, policy: Policy, asked: Asked = PLAIN
) -> Findings:
    """Judge what the command line names.

    Args:
        records: As for ``report_for``; none for all that the folder holds.
        results: Folder of the records.
        policy: Rules and expected scenarios; these only count when no record is named.
        asked: What else is said of the sides.

    Raises:
        ComparisonError: The words do not name two sides, or a record holds what is not known.
        RecordError: A named record cannot be found or read; of a folder, such a record is absent.
        ScenarioError: The policy expects a scenario that is none.
    """
    if records:
        return _findings([report_for(records, results, policy, asked)], [], policy)
    if not results.is_dir():
        raise RecordError(f"{results}: no such folder: name a RECORD, or a folder with --results")
    shelf = read_newest(results)
    newest = {stored.run.scenario.id: stored for stored in shelf.runs}
    reports: list[Report] = []
    absent = [
        Absent(broken.path.name, f"cannot be read: {broken.reason}") for broken in shelf.broken
    ]
    for scenario_id, stored in sorted(newest.items()):
        try:
            reports.append(report_for((str(stored.path),), results, policy, asked))
        except ComparisonError as error:
            absent.append(Absent(scenario_id, _no_baseline(stored, error)))
        except RecordError as error:
            absent.append(Absent(scenario_id, f"cannot be read: {error}"))
    # A control says nothing about a build, so beside comparisons it stands for none.
    judged = {report.scenario.id for report in reports if not is_control(report)}
    absent += _missing(judged or newest, policy)
    return _findings(reports, absent, policy)


def _findings(reports: Sequence[Report], absent: Sequence[Absent], policy: Policy) -> Findings:
    controls = [known_bad_in(report) for report in reports]
    return Findings(
        tuple(one for one, control in zip(reports, controls, strict=True) if control is None),
        tuple(absent),
        policy,
        tuple(control for control in controls if control is not None),
    )


def _no_baseline(stored: Stored, error: ComparisonError) -> str:
    return str(error) if len(stored.run.builds) == 2 else f"no baseline: {error}"


def _missing(there: Collection[str], policy: Policy) -> Iterator[Absent]:
    expected = find(home() / "scenarios", policy.expected) if policy.expected else []
    for scenario in expected:
        if scenario.id not in there:
            yield Absent(scenario.id, "missing: there is no record of it; measure it")
