"""From one run or two to a report: the way in to everything in ``analysis``.

A verdict depends on nothing but the records, and can be had again from them. Right or wrong needs
no baseline, so a side alone is judged by what its scenario expects, too; times and rates are not.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final

from hybridwatch.analysis.attribution import compute_attribution
from hybridwatch.analysis.changed_tokens import tokens_across
from hybridwatch.analysis.compare import compare, compare_tokens, effect_between, not_comparable
from hybridwatch.analysis.crossing import tradeoff_between
from hybridwatch.analysis.difference import differences_between, find_failed_trials
from hybridwatch.analysis.doubt import about_breach, obstacles
from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.judge import (
    FALSE_DISCOVERY_RATE,
    FIRST_LEVEL,
    build_families,
    judge_together,
)
from hybridwatch.analysis.pair import Pair, build_pair, summarize
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.power import level_of
from hybridwatch.analysis.rank import SETTLING_TRIALS
from hybridwatch.analysis.run_noise import Noise
from hybridwatch.analysis.subject import (
    OneSide,
    Subject,
    find_phase,
    list_sides,
    list_subjects,
    place_of,
    role_between,
    split_looks,
)
from hybridwatch.analysis.verdict import Comparison, Design, Report, Summary, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.analysis.wording.numbers import name_of
from hybridwatch.errors import ComparisonError
from hybridwatch.metrics import CHANGED_TOKENS, EXPLAINING, Kind, Metric, find_metric
from hybridwatch.records.identity import Expected
from hybridwatch.records.run import Run
from hybridwatch.scenarios.scenario import Expect

NOTHING: Final = Expected({}, {})
EXPECTED: Final = "expected"
"""Label of the baseline of such a report."""
_ASSUMPTION: Final = "What the scenario expects of a healthy engine stands for the baseline."


def broken_expectations(run: Run, side: int, expect: Expect) -> tuple[str, ...]:
    """List what a side did not fulfil, one line each, such as a metric without a value.

    Of every contract that was counted 0 is expected, whatever the scenario names.
    """
    values: dict[str, list[float]] = {}
    for trial in run.measured(side):
        for sample in trial.samples:
            values.setdefault(sample.metric, []).extend(sample.values)
    contracts = {metric: 0.0 for metric in values if find_metric(metric).kind is Kind.EXACT}
    reasons = {m: why for trial in run.measured(side) for m, why in trial.unsupported.items()}
    return (
        *_broken(values, reasons, {**contracts, **expect.exactly}, "exactly", exact=True),
        *_broken(values, reasons, expect.at_least, "at least", exact=False),
    )


def find_bound(metric: Metric, expected: Expected) -> tuple[float | None, bool]:
    """Give what is expected of a metric, if anything, and whether exactly that; of contracts 0."""
    exactly = expected.exactly.get(metric.id, 0.0 if metric.kind is Kind.EXACT else None)
    return expected.at_least.get(metric.id) if exactly is None else exactly, exactly is not None


def held_to(expected: Expected, comparison: Comparison) -> Comparison:
    """Call a comparison broken whose contender breaks what its scenario expects.

    A regression is bad news already, and what has no value keeps its verdict.
    """
    metric, new = comparison.metric, comparison.contender
    bound, exact = find_bound(metric, expected)
    if bound is None or new is None or comparison.statistic != metric.kind.statistic:
        return comparison
    is_known = comparison.verdict.is_bad_news or not comparison.verdict.is_measured
    if is_known or not is_wrong(metric, new.center, bound, exact=exact):
        return comparison
    old = None if comparison.baseline is None else comparison.baseline.center
    both = old is not None and is_wrong(metric, old, bound, exact=exact)
    words = f"{'exactly' if exact else 'at least'} {bound:g}"
    breach = about_breach(words, old, new.center, both=both)
    doubts = breach, *comparison.doubts
    return replace(comparison, verdict=Verdict.BROKEN, doubts=doubts, trials_needed=None)


def is_wrong(metric: Metric, found: float, bound: float, *, exact: bool) -> bool:
    """Whether a center is not what is expected; arguments as ``find_bound`` gives them."""
    return found != bound if exact else metric.better.is_worse(found - bound)


def _broken(
    values: Mapping[str, list[float]],
    reasons: Mapping[str, str],
    bounds: Mapping[str, float],
    words: str,
    *,
    exact: bool,
) -> Iterator[str]:
    for metric, bound in bounds.items():
        found, wanted = values.get(metric), f"{metric}: expected {words} {bound:g}, found"
        if not found:
            why = f" ({reasons[metric]})" if metric in reasons else ""
            yield f"{wanted} no value{why}"
        elif exact and any(value != bound for value in found):
            yield f"{wanted} {max(found, key=lambda value: abs(value - bound)):g}"
        elif not exact and fmean(found) < bound:
            yield f"{wanted} {fmean(found):.4g}"


def report_alone(side: OneSide) -> Report:
    """Compare a side with what its scenario expects; if that is nothing, a ``ComparisonError``."""
    comparisons = tuple(_comparisons(side))
    if not comparisons:
        raise ComparisonError(
            f"run {side.run.id}: one side alone cannot be compared, and its scenario expects "
            "nothing of what was measured"
        )
    failed = tuple(one for one in find_failed_trials(side, side) if one.side == "contender")
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
    subjects = [one for one in list_subjects(side, side) if one.metric.id not in EXPLAINING]
    measured = {subject.metric.id for subject in subjects}
    missing = (
        metric
        for metric in map(find_metric, (*expected.exactly, *expected.at_least))
        if metric.id not in measured and side.trials(find_phase(metric))
    )
    subjects += (Subject(metric, metric.kind.statistic) for metric in missing)
    for subject in subjects:
        if subject.statistic == subject.metric.kind.statistic:
            yield from _comparison(side, subject, expected)


def _comparison(side: OneSide, subject: Subject, expected: Expected) -> Iterator[Comparison]:
    metric, found = subject.metric, summarize(subject, side)
    bound, exact = find_bound(metric, expected)
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
    found = (one.unsupported.get(subject.metric.id) for one in side.trials(subject.phase))
    why = next((f": {reason}" for reason in found if reason), "")
    return (f"The run has no value of this metric{why}.",)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a comparison hangs on besides the trials of its two sides.

    Attributes:
        noise: How much runs of these builds scatter from one to the next, as ``noise_between``
            learns it; used only between two runs.
        level: Below it a p-value of timed trials counts. By itself 0.05, or less where the sides
            are of one run that was looked at several times while it grew.
        policy: Its margins take the place of the metrics' own, and its actions say which tests are
            adjusted together.
    """

    noise: Noise = field(default_factory=dict)
    level: float | None = None
    policy: Policy = STRICT
    across_testbeds: bool = False


PLAIN: Final = Terms()
"""Nothing learned, nothing waived."""


def build_report(run: Run, *, level: float | None = None) -> Report:
    """Compare the two builds of an interleaved run; one alone with what its scenario expects."""
    if len(run.builds) == 1:
        return report_alone(OneSide(run, 0))
    return report_between(*list_sides(run), Terms(level=level))


def report_between(baseline: OneSide, contender: OneSide, terms: Terms = PLAIN) -> Report:
    """Compare a side of one run with a side of another, or of the same one.

    Different scenarios or testbeds are no error: every comparison then says why it cannot be. A
    metric that the catalogue does not know is a ``ComparisonError``.
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
    pairs = [pair for pair in pairs if not _has_few_starts(pair)]
    if reasons:
        drafts = [not_comparable(pair, reasons) for pair in pairs]
    else:
        drafts = [
            compare(pair, terms.noise.get((pair.subject.metric.id, pair.subject.statistic)))
            for pair in pairs
        ]
        if (tokens := tokens_across(baseline, contender)) is not None:
            metric = terms.policy.applied(scenario.id, find_metric(CHANGED_TOKENS))
            insort(drafts, compare_tokens(metric, tokens), key=lambda one: place_of(one.metric))
    level = terms.level
    if level is None:
        level = level_of(looks) if looks else FALSE_DISCOVERY_RATE
    again = None if reasons or baseline.run.id != contender.run.id else split_looks(contender.run)
    comparisons, tests = judge_together(
        drafts,
        level,
        lambda metric: terms.policy.action_for(scenario.id, metric),
        again and _compare_looks([pair.subject for pair in pairs], again),
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


def _has_few_starts(pair: Pair) -> bool:
    """Whether it is of starts, and too few for a test: trials that share one would not add any."""
    fewest = min(side.summary.n if side.summary else 0 for side in pair.sides)
    return pair.subject.metric.is_of_start and fewest < SETTLING_TRIALS


def _compare_looks(
    subjects: Sequence[Subject], looks: tuple[Run, Run]
) -> tuple[Sequence[Comparison], Sequence[Comparison]]:
    timed = [one for one in subjects if one.metric.kind.has_noise]
    first, second = (
        [compare(build_pair(one, *list_sides(look))) for one in timed] for look in looks
    )
    return first, second


def find_reason(run: Run, policies: Iterable[Policy] = (STRICT,)) -> str:
    """Say which time, rate or count of a whole run of two builds is to be measured again.

    Of the reports on an unchanged engine 1 in 20 is red by chance, so of nights with six scenarios
    every fourth; a change counts only if trials on new engines show it too (``analysis/judge.py``).
    Empty where none is a change of a first look, by any of the policies, or where something else is
    bad news that stops: to measure again would change nothing.
    """
    for policy in policies:
        report = report_between(*list_sides(run), Terms(level=FIRST_LEVEL, policy=policy))
        changed = [
            one
            for one in report.comparisons
            if one.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
            and one.metric.kind.has_noise
            and one.p_value is not None
        ]
        others = (consequence(c, report, policy) for c in report.comparisons if c not in changed)
        if changed and not report.failures and Action.BLOCK not in others:
            clearest = min(changed, key=lambda one: one.p_adjusted or 0.0)
            word = "worse" if clearest.verdict is Verdict.REGRESSION else "better"
            return f"{name_of(clearest)} {numbers.change(clearest)} ({word})"
    return ""
