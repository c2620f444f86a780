"""One subject, two sides: every number of a comparison except those that need the whole report.

Verdicts that no other test can touch (exact, missing, failed, not comparable) are given here.
The others stay inconclusive until ``judge`` has the adjusted p-value.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from hybridwatch.analysis import doubt, paired_proportion, power
from hybridwatch.analysis.answers import Answers, answers_of, pair
from hybridwatch.analysis.blocks import blocks_of
from hybridwatch.analysis.compare_counts import compare_repeated, repeats_exactly
from hybridwatch.analysis.compare_trials import compare_trials
from hybridwatch.analysis.machine_state import about_surroundings
from hybridwatch.analysis.noise import REACH
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.reduction import reduce_side
from hybridwatch.analysis.subject import Subject
from hybridwatch.analysis.verdict import Comparison, Design, Summary, Verdict
from hybridwatch.metric import Direction, Kind, Metric

_NO_NOISE: Final = "A count of broken rules has no noise: one trial tells."
_QUESTIONS: Final = (
    "Questions are answered independently of each other; without a change as many answers are lost "
    "as won."
)


def compare(
    subject: Subject, baseline: OneSide, contender: OneSide, noise: float | None = None
) -> Comparison:
    """Compare two sides that are known to be comparable.

    Args:
        subject: Metric and statistic.
        baseline: First side.
        contender: Second side.
        noise: How much runs of these builds scatter from one to the next, if known; matters only
            where the sides are of two runs.

    Returns:
        A comparison with its verdict, or an inconclusive one with a p-value for ``judge``.
    """
    left, right = summarize(subject, baseline), summarize(subject, contender)
    blocks = blocks_of(baseline, contender, subject)
    draft = _draft(subject, left, right)
    exact = repeats_exactly(subject.metric, left, right)
    setting = doubt.about_setting(baseline, contender, subject, blocks, exact=exact)
    draft = doubt.added(draft, *setting)
    if noise is not None and baseline.run.id != contender.run.id:
        draft = _with_noise(draft, noise)
    if not exact:
        draft = doubt.added(draft, *about_surroundings(baseline, contender, subject))
    broken = sum(reduce_side(side, subject).broken for side in (baseline, contender))
    draft = doubt.added(draft, *doubt.about_broken(broken))
    draft = doubt.added(draft, *doubt.about_unsupported(baseline, contender, subject))
    if left is None or right is None:
        return _compare_absent(draft, subject, baseline, contender)
    draft = doubt.added(draft, *doubt.about_failures(baseline, contender, subject.phase))
    match subject.metric.kind:
        case Kind.EXACT:
            return _compare_exact(draft, left, right)
        case Kind.PROPORTION:
            task = subject.metric.id.partition(".")[2]
            return _compare_answers(draft, answers_of(baseline, task), answers_of(contender, task))
        case Kind.COUNT if exact:
            return compare_repeated(draft, left, right)
        case Kind.COUNT | Kind.RATE | Kind.TIME:
            return compare_trials(draft, left, right, blocks)


def not_comparable(
    subject: Subject, baseline: OneSide, contender: OneSide, reasons: tuple[str, ...]
) -> Comparison:
    """Show two sides that must not be compared, with the reasons."""
    left, right = summarize(subject, baseline), summarize(subject, contender)
    draft = replace(_draft(subject, left, right), verdict=Verdict.NOT_COMPARABLE, effect=None)
    return doubt.added(draft, *reasons)


def _draft(subject: Subject, left: Summary | None, right: Summary | None) -> Comparison:
    return Comparison(
        metric=subject.metric,
        statistic=subject.statistic,
        baseline=left,
        contender=right,
        effect=_effect(subject.metric.kind, left, right),
        interval=None,
        p_value=None,
        p_adjusted=None,
        equivalence_p=None,
        minimum_detectable_effect=None,
        trials_needed=None,
        verdict=Verdict.INCONCLUSIVE,
        test="none",
        relevance=_relevance(subject.metric),
    )


def _relevance(metric: Metric) -> float:
    return metric.margin if metric.relevance is None else metric.relevance


def _with_noise(draft: Comparison, noise: float) -> Comparison:
    bound = max(draft.relevance, REACH * noise)
    doubts = doubt.about_noise(noise, bound, draft.relevance)
    return doubt.added(replace(draft, noise=noise, relevance=bound), *doubts)


def summarize(subject: Subject, side: OneSide) -> Summary | None:
    """Reduce one side to its center and the numbers behind it; ``None`` when it has none."""
    values = reduce_side(side, subject).values
    if not values:
        return None
    match subject.metric.kind:
        case Kind.EXACT:
            worst = max if subject.metric.better is Direction.LOWER else min
            return Summary(worst(values), values)
        case Kind.PROPORTION:
            return Summary(float(np.mean(values)), values)
        case Kind.COUNT | Kind.RATE | Kind.TIME:
            return Summary(float(np.median(values)), values)


def _effect(kind: Kind, left: Summary | None, right: Summary | None) -> float | None:
    if left is None or right is None:
        return None
    if not kind.has_noise:
        return right.center - left.center
    return right.center / left.center - 1 if left.center else None


def _compare_absent(
    draft: Comparison, subject: Subject, baseline: OneSide, contender: OneSide
) -> Comparison:
    sides = (("baseline", baseline, draft.baseline), ("contender", contender, draft.contender))
    absent = [(name, side) for name, side, summary in sides if summary is None]
    if any(side.failures(subject.phase) for _, side in absent):
        doubts = doubt.about_failures(baseline, contender, subject.phase)
        return doubt.added(replace(draft, verdict=Verdict.FAILED), *doubts)
    if any(subject.metric.id in t.unsupported for _, s in absent for t in s.trials(subject.phase)):
        # A doubt says why by now, and measuring again would not help.
        return replace(draft, verdict=Verdict.MISSING)
    names = " and ".join(name for name, _ in absent)
    return doubt.added(
        replace(draft, verdict=Verdict.MISSING),
        f"The {names} has no value of this metric: measure that side again.",
    )


def _compare_exact(draft: Comparison, left: Summary, right: Summary) -> Comparison:
    doubts = [
        *doubt.about_constancy("baseline", left.values),
        *doubt.about_constancy("contender", right.values),
    ]
    if left.center == right.center:
        if left.center != 0:
            doubts.append(doubt.about_shared_breach(left.center))
        verdict = Verdict.EQUIVALENT
    elif left.center and right.center and _varies(left, right):
        doubts.append(doubt.about_varying_breach(left.center, right.center))
        verdict = Verdict.INCONCLUSIVE
    elif draft.metric.better.is_worse(right.center - left.center):
        verdict = Verdict.REGRESSION
    else:
        verdict = Verdict.IMPROVEMENT
    judged = replace(
        draft, verdict=verdict, test="exact", design=Design.EXACT, assumption=_NO_NOISE
    )
    return doubt.added(judged, *doubts)


def _varies(*sides: Summary) -> bool:
    """Whether trials of one side counted differently, so that a count is no exact number."""
    return any(len(set(side.values)) > 1 for side in sides)


def _compare_answers(draft: Comparison, left: Answers, right: Answers) -> Comparison:
    if not left.by_key or not right.by_key:
        return doubt.added(draft, doubt.NO_ANSWERS)
    draft = replace(draft, baseline=_share(left), contender=_share(right))
    reasons = doubt.about_questions(left, right)
    if reasons:
        apart = replace(draft, verdict=Verdict.NOT_COMPARABLE, effect=None)
        return doubt.added(apart, *reasons)
    pairs, flips = pair(left, right)
    margin, discordant = draft.metric.margin, pairs.lost + pairs.won
    return replace(
        draft,
        effect=pairs.difference,
        interval=paired_proportion.difference_interval(pairs),
        p_value=paired_proportion.mcnemar_p(pairs),
        equivalence_p=paired_proportion.equivalence_p(pairs, margin),
        minimum_detectable_effect=power.detectable_difference(pairs.n, discordant, draft.relevance),
        trials_needed=power.documents_to_settle(pairs.n, discordant, margin),
        test="McNemar",
        design=Design.PAIRED,
        assumption=_QUESTIONS,
        pairs=pairs.n,
        churn=pairs.churn,
        flips=flips,
    )


def _share(answers: Answers) -> Summary:
    return Summary(float(np.mean(answers.values)), answers.values)
