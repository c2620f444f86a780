"""One subject, two sides: every number of a comparison except those that need the whole report.

Verdicts that no other test can touch (exact, missing, failed, not comparable) are given here.
The others stay inconclusive until ``judge`` has the adjusted p-value.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from hybridwatch.analysis import doubt, paired_proportion, power
from hybridwatch.analysis.answers import Answers, answers_of, pair
from hybridwatch.analysis.compare_counts import compare_repeated
from hybridwatch.analysis.compare_trials import compare_trials
from hybridwatch.analysis.machine_state import is_restless
from hybridwatch.analysis.noise import REACH
from hybridwatch.analysis.pair import Pair
from hybridwatch.analysis.verdict import Comparison, Design, Summary, Verdict
from hybridwatch.metrics import Kind

_NO_NOISE: Final = "A count of broken rules has no noise: one trial tells."
_QUESTIONS: Final = (
    "Questions are answered independently of each other; without a change as many answers are lost "
    "as won."
)


def compare(pair: Pair, noise: float | None = None) -> Comparison:
    """Compare two sides that are known to be comparable.

    Args:
        pair: The sides.
        noise: How much runs of these builds scatter from one to the next, if known; matters only
            where the sides are of two runs.

    Returns:
        A comparison with its verdict, or an inconclusive one with a p-value for ``judge``.
    """
    draft = _draft(pair, None if pair.of_one_run else noise)
    timed = pair.subject.metric.kind.has_noise and not pair.repeats
    draft = replace(draft, of_unknown_runs=timed and not pair.of_one_run and draft.noise is None)
    if timed and pair.of_one_run and draft.metric.hangs_on_the_clock:
        draft = replace(draft, restless=is_restless(pair))
    draft = doubt.added(draft, *doubt.about_pair(pair, draft))
    left, right = pair.baseline.summary, pair.contender.summary
    if left is None or right is None:
        return _compare_absent(draft, pair)
    match pair.subject.metric.kind:
        case Kind.EXACT:
            judged = compare_exact(draft, left, right)
            # An engine beside itself has no baseline but the rule.
            broken = (left.center or right.center) and pair.of_one_engine
            return replace(judged, verdict=Verdict.REGRESSION) if broken else judged
        case Kind.PROPORTION:
            task = pair.subject.metric.id.partition(".")[2]
            return _compare_answers(draft, *(answers_of(side.side, task) for side in pair.sides))
        case Kind.COUNT if pair.repeats:
            return compare_repeated(draft, left, right)
        case Kind.COUNT | Kind.RATE | Kind.TIME:
            return compare_trials(draft, left, right, pair.blocks)


def not_comparable(pair: Pair, reasons: tuple[str, ...]) -> Comparison:
    """Show two sides that must not be compared, with the reasons."""
    draft = replace(_draft(pair, None), verdict=Verdict.NOT_COMPARABLE, effect=None)
    return doubt.added(draft, *reasons)


def _draft(pair: Pair, noise: float | None) -> Comparison:
    metric, left, right = pair.subject.metric, pair.baseline.summary, pair.contender.summary
    return Comparison(
        metric=metric,
        statistic=pair.subject.statistic,
        baseline=left,
        contender=right,
        effect=effect_between(metric.kind, left, right),
        relevance=metric.bound if noise is None else max(metric.bound, REACH * noise),
        noise=noise,
    )


def effect_between(kind: Kind, left: Summary | None, right: Summary | None) -> float | None:
    """Give the change from one side to the other, as ``Comparison.effect``."""
    if left is None or right is None:
        return None
    if not kind.has_noise:
        return right.center - left.center
    return right.center / left.center - 1 if left.center else None


def _compare_absent(draft: Comparison, pair: Pair) -> Comparison:
    absent = [side for side in pair.sides if side.summary is None]
    if any(side.failures for side in absent):
        doubts = doubt.about_failures(pair)
        return doubt.added(replace(draft, verdict=Verdict.FAILED), *doubts)
    if any(draft.metric.id in trial.unsupported for side in absent for trial in side.trials):
        # A doubt says why by now, and measuring again would not help.
        return replace(draft, verdict=Verdict.MISSING)
    names = " and ".join(side.name for side in absent)
    return doubt.added(
        replace(draft, verdict=Verdict.MISSING),
        f"The {names} has no value of this metric: measure that side again.",
    )


def compare_exact(
    draft: Comparison, left: Summary, right: Summary, assumption: str = _NO_NOISE
) -> Comparison:
    """Give two counts without noise their verdict.

    Args:
        draft: What is known already.
        left: The baseline's trials.
        right: The contender's.
        assumption: What is taken for granted, one line.
    """
    doubts = [
        *doubt.about_constancy("baseline", left.values),
        *doubt.about_constancy("contender", right.values),
    ]
    if left.center == right.center == 0:
        verdict = Verdict.EQUIVALENT
    elif left.center == right.center or (left.center and right.center and _varies(left, right)):
        verdict = Verdict.INCONCLUSIVE
    elif draft.metric.better.is_worse(right.center - left.center):
        verdict = Verdict.REGRESSION
    else:
        verdict = Verdict.IMPROVEMENT
    judged = replace(
        draft, verdict=verdict, test="exact", design=Design.EXACT, assumption=assumption
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
