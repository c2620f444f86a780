"""From one run or two to a report: the way in to everything in ``analysis``.

Pure: runs are handed in whole, nothing here reads a file, so a verdict depends on nothing but the
records and can be had again from them.
"""

from hybridwatch.analysis.compare import compare, lay_apart
from hybridwatch.analysis.difference import differences_between, failures_of
from hybridwatch.analysis.doubt import obstacles
from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.subject import subjects_of
from hybridwatch.analysis.verdict import Report
from hybridwatch.errors import ComparisonError
from hybridwatch.record.run import Run


def report_of(run: Run) -> Report:
    """Compare the two builds of an interleaved run; equal builds make it an A/A report.

    Raises:
        ComparisonError: The run does not have two builds, or holds an unknown metric.
    """
    if len(run.builds) != 2:
        raise ComparisonError(
            f"run {run.id} has {len(run.builds)} build(s), expected 2: "
            "name a second record to compare it with"
        )
    return report_between(run, 0, run, 1)


def report_between(
    baseline: Run, baseline_side: int, contender: Run, contender_side: int
) -> Report:
    """Compare a side of one run with a side of another, or of the same one.

    Different scenarios or testbeds are no error: every comparison then says why it cannot be.

    Args:
        baseline: The run that holds the first side.
        baseline_side: Index into its builds.
        contender: The run that holds the second side.
        contender_side: Index into its builds.

    Raises:
        ComparisonError: There is no such side, or a run holds an unknown metric.
    """
    left, right = OneSide(baseline, baseline_side), OneSide(contender, contender_side)
    subjects = subjects_of(left, right)
    reasons = obstacles(left, right)
    if reasons:
        drafts = [lay_apart(subject, left, right, reasons) for subject in subjects]
    else:
        drafts = [compare(subject, left, right) for subject in subjects]
    comparisons, tests = judge_together(drafts)
    return Report(
        scenario=contender.scenario,
        baseline=left.identity(),
        contender=right.identity(),
        comparisons=comparisons,
        tests=tests,
        false_discovery_rate=FALSE_DISCOVERY_RATE,
        differences=differences_between(left, right),
        failures=failures_of(left, right),
    )
