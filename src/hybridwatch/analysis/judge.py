"""The verdict of a comparison, once its p-value has passed the report's control.

Significant is beyond noise; relevant is beyond noise *and* beyond the metric's margin. Only a
relevant change is a regression or an improvement, and only a proof of sameness is equivalent.
"""

from collections.abc import Sequence
from dataclasses import replace

from hybridwatch.analysis import doubt
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE, adjust
from hybridwatch.analysis.power import LEVEL
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.metric import Direction


def judge_together(drafts: Sequence[Comparison]) -> tuple[tuple[Comparison, ...], int]:
    """Judge all comparisons of a report under one false-discovery control.

    Args:
        drafts: As ``compare`` made them; those without a p-value keep their verdict.

    Returns:
        The comparisons in the same order, and how many p-values were controlled together.
    """
    p_values = [draft.p_value for draft in drafts if draft.p_value is not None]
    adjusted = iter(adjust(p_values))
    judged = tuple(
        draft if draft.p_value is None else _judge(draft, next(adjusted), len(p_values))
        for draft in drafts
    )
    return judged, len(p_values)


def _judge(draft: Comparison, p_adjusted: float, tests: int) -> Comparison:
    significant = p_adjusted < FALSE_DISCOVERY_RATE
    same = draft.equivalence_p is not None and draft.equivalence_p < LEVEL
    judged = replace(draft, p_adjusted=p_adjusted)
    if significant and _is_relevant(draft):
        verdict = Verdict.REGRESSION if _is_worse(draft) else Verdict.IMPROVEMENT
        return replace(judged, verdict=verdict, trials_needed=None)
    if same:
        return replace(judged, verdict=Verdict.EQUIVALENT, trials_needed=None)
    doubts = draft.doubts
    if significant:
        doubts = (*doubts, doubt.WITHIN_MARGIN)
    elif draft.p_value is not None and draft.p_value < LEVEL:
        doubts = (*doubts, doubt.about_multiplicity(draft.p_value, tests))
    return replace(judged, verdict=Verdict.INCONCLUSIVE, doubts=doubts)


def _is_relevant(draft: Comparison) -> bool:
    # No relative change exists from a baseline of 0; whatever is significant there matters.
    return draft.effect is None or abs(draft.effect) > draft.metric.margin


def _is_worse(draft: Comparison) -> bool:
    if draft.baseline is None or draft.contender is None:
        raise ValueError("a comparison with a p-value has two sides")
    higher = draft.contender.center > draft.baseline.center
    return higher is (draft.metric.better is Direction.LOWER)
