"""From one run or two to a report: the way in to everything in ``analysis``.

Pure: runs are handed in whole, nothing here reads a file, so a verdict depends on nothing but the
records and can be had again from them.
"""

from bisect import insort
from dataclasses import dataclass, field, replace
from typing import Final

from hybridwatch.analysis.attribution import compute_attribution
from hybridwatch.analysis.changed_tokens import tokens_across
from hybridwatch.analysis.compare import compare, compare_tokens, not_comparable
from hybridwatch.analysis.crossing import tradeoff_between
from hybridwatch.analysis.difference import differences_between, find_failed_trials
from hybridwatch.analysis.doubt import obstacles
from hybridwatch.analysis.expectation import NOTHING, held_to, report_alone
from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE, build_families
from hybridwatch.analysis.noise import Noise
from hybridwatch.analysis.one_side import OneSide, list_sides, role_between
from hybridwatch.analysis.pair import build_pair
from hybridwatch.analysis.policy import STRICT, Policy
from hybridwatch.analysis.sequential import level_of
from hybridwatch.analysis.subject import list_subjects, place_of
from hybridwatch.analysis.verdict import Report
from hybridwatch.metrics import CHANGED_TOKENS, EXPLAINING, find_metric
from hybridwatch.records.run import Run


@dataclass(frozen=True, slots=True)
class Terms:
    """What a comparison hangs on besides the trials of its two sides.

    Attributes:
        noise: How much runs of these builds scatter from one to the next, as ``noise_between``
            learns it; used only between two runs.
        level: Below it a p-value of timed trials counts. By itself 0.05, or less where the sides
            are of one run that was looked at several times while it grew.
        policy: Whose margins take the place of the metrics' own, and whose actions say which tests
            are adjusted together.
    """

    noise: Noise = field(default_factory=dict)
    level: float | None = None
    policy: Policy = STRICT
    across_testbeds: bool = False


PLAIN: Final = Terms()
"""Nothing learned, nothing waived."""


def build_report(run: Run, *, level: float | None = None) -> Report:
    """Compare the two builds of an interleaved run; equal builds make it an A/A report.

    A run of one build is held against what its scenario expects (``report_alone``).

    Raises:
        ComparisonError: The run holds an unknown metric.
    """
    if len(run.builds) == 1:
        return report_alone(OneSide(run, 0))
    return report_between(*list_sides(run), Terms(level=level))


def report_between(baseline: OneSide, contender: OneSide, terms: Terms = PLAIN) -> Report:
    """Compare a side of one run with a side of another, or of the same one.

    A side with itself is held against what its scenario expects (``report_alone``). Different
    scenarios or testbeds are no error: every comparison then says why it cannot be.

    Raises:
        ComparisonError: A run holds an unknown metric.
    """
    if baseline.run is contender.run and baseline.index == contender.index:
        return report_alone(contender)
    scenario = contender.run.scenario
    looks = contender.run.looks if baseline.run.id == contender.run.id else None
    subjects = [
        replace(subject, metric=terms.policy.applied(scenario.id, subject.metric))
        for subject in list_subjects(baseline, contender)
        if subject.metric.id not in EXPLAINING
    ]
    reasons = obstacles(baseline, contender, across_testbeds=terms.across_testbeds)
    pairs = [build_pair(subject, baseline, contender) for subject in subjects]
    if reasons:
        drafts = [not_comparable(pair, reasons) for pair in pairs]
    else:
        drafts = [
            compare(pair, terms.noise.get((pair.subject.metric.id, pair.subject.statistic)))
            for pair in pairs
        ]
        tokens = tokens_across(baseline, contender)
        if tokens is not None:
            metric = terms.policy.applied(scenario.id, find_metric(CHANGED_TOKENS))
            draft = compare_tokens(metric, tokens)
            insort(drafts, draft, key=lambda one: place_of(one.metric))
    level = terms.level
    if level is None:
        level = level_of(looks) if looks else FALSE_DISCOVERY_RATE
    comparisons, tests = judge_together(
        drafts, level, lambda metric: terms.policy.action_for(scenario.id, metric)
    )
    expected = contender.run.expected or NOTHING
    comparisons = tuple(held_to(expected, one) for one in comparisons)
    failed = find_failed_trials(baseline, contender)
    return Report(
        scenario=scenario,
        baseline=baseline.identity(),
        contender=contender.identity(),
        comparisons=comparisons,
        tests=tests,
        false_discovery_rate=FALSE_DISCOVERY_RATE,
        differences=differences_between(baseline, contender),
        failures=tuple(f"{trial.place}: {trial.reason}" for trial in failed),
        attribution=compute_attribution(comparisons, baseline, contender),
        looks=looks,
        failed_trials=failed,
        families=build_families(comparisons),
        role=role_between(baseline, contender),
        tradeoff=None if reasons else tradeoff_between(baseline, contender, level),
    )
