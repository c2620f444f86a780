"""Two sides and their report: what every verb and every view that compares is made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridwatch.analysis.difference import differences_between
from hybridwatch.analysis.noise import REMEMBERED, Noise, noise_between
from hybridwatch.analysis.one_side import OneSide, sides_of
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.replay import parameters_of
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.verdict import Report
from hybridwatch.records.run import UNKNOWN, Run


@dataclass(frozen=True, slots=True)
class Chosen:
    """One side, and the record it was read from."""

    record: Path
    run: Run
    side: int

    @property
    def one_side(self) -> OneSide:
        """The side as the analysis wants it."""
        return OneSide(self.run, self.side)


@dataclass(frozen=True, slots=True)
class Judged:
    """A report, and what it was made from.

    Attributes:
        baseline: First side.
        contender: Second side.
        terms: What it hangs on besides; no noise between the sides of one run.
        report: The verdicts.
    """

    baseline: Chosen
    contender: Chosen
    terms: Terms
    report: Report

    @property
    def is_alone(self) -> bool:
        """Whether there is but one side, held against what its scenario expects."""
        return self.baseline is self.contender

    @property
    def parameters(self) -> dict[str, Any]:
        """Every number besides the records that the report hangs on."""
        return parameters_of(
            self.report.false_discovery_rate,
            self.terms.noise,
            across_testbeds=self.terms.across_testbeds,
        )


def both_sides(record: Path, run: Run) -> tuple[Chosen, Chosen]:
    """Give the two sides of an interleaved run.

    Raises:
        ComparisonError: The run has one build only.
    """
    baseline, contender = sides_of(run)
    return Chosen(record, run, baseline.index), Chosen(record, run, contender.index)


def judge(
    baseline: Chosen,
    contender: Chosen,
    results: Path,
    policy: Policy = STRICT,
    *,
    across_testbeds: bool = False,
) -> Judged:
    """Compare two sides as every verb does.

    Args:
        baseline: First side.
        contender: Second side.
        results: The folder whose other runs tell how much each series varies.
        policy: Whose margins take the place of the metrics' own.
        across_testbeds: Whether to compare what different machines measured.
    """
    noise = _learned(baseline, contender, results)
    terms = Terms(noise=noise, policy=policy, across_testbeds=across_testbeds)
    return judge_on(terms, baseline, contender)


def judge_on(terms: Terms, baseline: Chosen, contender: Chosen) -> Judged:
    """Compare two sides, the noise between runs being known."""
    report = report_between(baseline.one_side, contender.one_side, terms)
    return Judged(baseline, contender, terms, report)


def _learned(baseline: Chosen, contender: Chosen, results: Path) -> Noise:
    if baseline.run.id == contender.run.id:
        return {}  # the sides of one run share its start, its memory layout and its day
    # The sides of one run need no database, whose import takes longer than their verdict.
    from hybridwatch.database.heads import read_alike

    labels = {baseline.one_side.build.label, contender.one_side.build.label}
    history = [
        OneSide(run, side)
        for run in read_alike(results, contender.run, labels, REMEMBERED)
        for side in range(len(run.builds))
    ]
    return noise_between(history, baseline.one_side, contender.one_side)


def machines_apart(baseline: Chosen, contender: Chosen) -> tuple[str, ...]:
    """Say in what the machines of two sides differ, a line each; nothing when they are one."""
    left, right = baseline.run.testbed, contender.run.testbed
    if left.id != right.id:
        lines = differences_between(baseline.one_side, contender.one_side)
        return tuple(line for line in lines if line.startswith("testbed "))
    if left.id == UNKNOWN and baseline.run.id != contender.run.id:
        return ("neither side says where it was measured: ingest with --testbed",)
    return ()
