"""One side alone, held against what its scenario expects: right or wrong needs no baseline.

Times and rates need one, so they are not judged here.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hybridwatch.analysis.compare import effect_between
from hybridwatch.analysis.difference import failed_trials_of
from hybridwatch.analysis.expectation import NOTHING, bound_of, is_wrong
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import summarize
from hybridwatch.analysis.subject import Subject, phase_of, subjects_of
from hybridwatch.analysis.verdict import Comparison, Design, Report, Summary, Verdict
from hybridwatch.errors import ComparisonError
from hybridwatch.metrics import metric_of
from hybridwatch.metrics.catalogue import EXPLAINING
from hybridwatch.records.identity import Expected

EXPECTED: Final = "expected"
"""Label of the baseline of such a report."""

_ASSUMPTION: Final = "What the scenario expects of a healthy engine stands for the baseline."


def report_alone(side: OneSide) -> Report:
    """Hold a side against what its scenario expects.

    Raises:
        ComparisonError: Nothing is expected of what the run measured, or it holds an unknown
            metric.
    """
    comparisons = tuple(_comparisons(side))
    if not comparisons:
        raise ComparisonError(
            f"run {side.run.id}: one side alone cannot be compared, and its scenario expects "
            "nothing of what was measured"
        )
    failed = tuple(one for one in failed_trials_of(side, side) if one.side == "contender")
    contender = side.identity()
    return Report(
        scenario=side.run.scenario,
        baseline=replace(contender, build=replace(contender.build, label=EXPECTED)),
        contender=contender,
        comparisons=comparisons,
        tests=0,
        false_discovery_rate=FALSE_DISCOVERY_RATE,
        failures=tuple(f"{trial.place}: {trial.reason}" for trial in failed),
        failed_trials=failed,
    )


def _comparisons(side: OneSide) -> Iterator[Comparison]:
    expected = side.run.expected or NOTHING
    subjects = [one for one in subjects_of(side, side) if one.metric.id not in EXPLAINING]
    measured = {subject.metric.id for subject in subjects}
    missing = (
        metric
        for metric in map(metric_of, (*expected.exactly, *expected.at_least))
        if metric.id not in measured and side.trials(phase_of(metric))
    )
    subjects += (Subject(metric, metric.kind.statistic) for metric in missing)
    for subject in subjects:
        if subject.statistic == subject.metric.kind.statistic:
            yield from _comparison(side, subject, expected)


def _comparison(side: OneSide, subject: Subject, expected: Expected) -> Iterator[Comparison]:
    metric, found = subject.metric, summarize(subject, side)
    bound, exact = bound_of(metric, expected)
    baseline = None if bound is None else Summary(bound, ())
    draft = Comparison(metric, subject.statistic, baseline, found, effect=None)
    if found is None:
        if side.failures(subject.phase):
            yield replace(draft, verdict=Verdict.FAILED)
        elif bound is not None:
            yield replace(draft, verdict=Verdict.MISSING, doubts=_reasons(side, subject))
    elif bound is not None and baseline is not None:
        wrong = is_wrong(metric, found.center, bound, exact=exact)
        yield replace(
            draft,
            effect=effect_between(metric.kind, baseline, found),
            verdict=Verdict.REGRESSION if wrong else Verdict.EQUIVALENT,
            test="exact",
            design=Design.EXACT,
            assumption=_ASSUMPTION,
        )


def _reasons(side: OneSide, subject: Subject) -> tuple[str, ...]:
    metric = subject.metric.id
    reasons = [trial.unsupported.get(metric) for trial in side.trials(subject.phase)]
    why = next((f": {reason}" for reason in reasons if reason), "")
    return (f"The run has no value of this metric{why}.",)
