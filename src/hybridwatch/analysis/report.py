"""From one run or two to a report: the way in to everything in ``analysis``.

Pure: runs are handed in whole, nothing here reads a file, so a verdict depends on nothing but the
records and can be had again from them.
"""

from dataclasses import replace

from hybridwatch.analysis.attribution import attribution_of
from hybridwatch.analysis.compare import compare, lay_apart
from hybridwatch.analysis.difference import differences_between, failures_of
from hybridwatch.analysis.doubt import obstacles
from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE
from hybridwatch.analysis.noise import Noise
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.sequential import level_of
from hybridwatch.analysis.subject import subjects_of
from hybridwatch.analysis.verdict import Report
from hybridwatch.errors import ComparisonError
from hybridwatch.metric.catalogue import EXPLAINING
from hybridwatch.record.run import Run


def report_of(run: Run, *, level: float | None = None) -> Report:
    """Compare the two builds of an interleaved run; equal builds make it an A/A report.

    Args:
        run: Two builds.
        level: As for ``report_between``.

    Raises:
        ComparisonError: The run does not have two builds, or holds an unknown metric.
    """
    if len(run.builds) != 2:
        raise ComparisonError(
            f"run {run.id} has {len(run.builds)} build(s), expected 2: "
            "name a second record to compare it with"
        )
    return report_between(run, 0, run, 1, level=level)


def report_between(
    baseline: Run,
    baseline_side: int,
    contender: Run,
    contender_side: int,
    *,
    noise: Noise | None = None,
    level: float | None = None,
    policy: Policy = STRICT,
    across_testbeds: bool = False,
) -> Report:
    """Compare a side of one run with a side of another, or of the same one.

    Different scenarios or testbeds are no error: every comparison then says why it cannot be.

    Args:
        baseline: The run that holds the first side.
        baseline_side: Index into its builds.
        contender: The run that holds the second side.
        contender_side: Index into its builds.
        noise: How much runs of these builds scatter from one to the next, as ``noise_between``
            learns it; used only between two runs.
        level: Below it a p-value of timed trials counts. By itself 0.05, or less where the sides
            are of one run that was looked at several times while it grew.
        policy: Whose margins take the place of the metrics' own.
        across_testbeds: Whether to compare what different machines measured.

    Raises:
        ComparisonError: There is no such side, or a run holds an unknown metric.
    """
    left, right = OneSide(baseline, baseline_side), OneSide(contender, contender_side)
    looks = contender.looks if baseline.id == contender.id else None
    subjects = [
        replace(subject, metric=policy.applied(contender.scenario.id, subject.metric))
        for subject in subjects_of(left, right)
        if subject.metric.id not in EXPLAINING
    ]
    reasons = obstacles(left, right, across_testbeds=across_testbeds)
    if reasons:
        drafts = [lay_apart(subject, left, right, reasons) for subject in subjects]
    else:
        known = noise or {}
        drafts = [
            compare(subject, left, right, known.get((subject.metric.id, subject.statistic)))
            for subject in subjects
        ]
    comparisons, tests = judge_together(drafts, level_of(looks) if level is None else level)
    return Report(
        scenario=contender.scenario,
        baseline=left.identity(),
        contender=right.identity(),
        comparisons=comparisons,
        tests=tests,
        false_discovery_rate=FALSE_DISCOVERY_RATE,
        differences=differences_between(left, right),
        failures=failures_of(left, right),
        attribution=attribution_of(comparisons, left, right),
        looks=looks,
    )
