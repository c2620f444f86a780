"""From two chosen sides to a report, to a stored verdict, and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridwatch.analysis.noise import REMEMBERED, Noise, noise_between
from hybridwatch.analysis.one_side import OneSide, sides_of
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.replay import (
    Replay,
    changes_between,
    deviations_between,
    noise_in,
    parameters_of,
)
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.verdict import Report
from hybridwatch.record.run import Run
from hybridwatch.store import (
    StoredVerdict,
    present_tools,
    read_alike,
    read_side,
    read_verdict,
    refer,
    results_of,
    write_verdict,
)
from hybridwatch.views.jsonform import to_json


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
    labels = {baseline.one_side.build.label, contender.one_side.build.label}
    history = [
        OneSide(run, side)
        for run in read_alike(results, contender.run, labels, REMEMBERED)
        for side in range(len(run.builds))
    ]
    return noise_between(history, baseline.one_side, contender.one_side)


def save(results: Path, judged: Judged) -> Path:
    """Store a verdict with all it takes to have it again.

    Returns:
        Its path.

    Raises:
        RecordError: It cannot be written.
    """
    baseline, contender = (
        refer(results, chosen.record, chosen.run.id, chosen.side)
        for chosen in (judged.baseline, judged.contender)
    )
    verdict = StoredVerdict(
        baseline=baseline,
        contender=contender,
        parameters=judged.parameters,
        tools=present_tools(),
        report=to_json(judged.report),
    )
    return write_verdict(results, verdict, judged.contender.run)


def replay(path: Path, results: Path) -> tuple[Judged, Replay]:
    """Judge the records of a stored verdict again.

    Args:
        path: The verdict's file.
        results: The folder its records are named relative to, unless the file lies in one itself.

    Returns:
        The verdict of today, and how the stored one stands beside it.

    Raises:
        RecordError: This is no verdict, or a record is gone or damaged.
        ComparisonError: The records cannot be judged.
    """
    verdict, untouched = read_verdict(path)
    folder = results_of(path, results)
    alterations = [] if untouched else [f"{path} was altered after it was written."]
    sides = [read_side(folder, reference) for reference in (verdict.baseline, verdict.contender)]
    alterations += [
        f"{side.record} was altered after it was judged; records never change: restore it."
        for side in sides
        if not side.as_judged
    ]
    baseline, contender = (Chosen(side.record, side.run, side.index) for side in sides)
    terms = Terms(
        noise=noise_in(verdict.parameters),
        across_testbeds=bool(verdict.parameters.get("across_testbeds")),
    )
    judged = judge_on(terms, baseline, contender)
    stored = {**verdict.report, "parameters": verdict.parameters}
    again = {**to_json(judged.report), "parameters": judged.parameters}
    return judged, Replay(
        deviations=deviations_between(stored, again),
        alterations=tuple(dict.fromkeys(alterations)),
        changes=changes_between(verdict.tools, present_tools()),
    )
