"""The verdict of a comparison, once its p-value has passed the report's control.

Significant is beyond noise; relevant is beyond noise *and* beyond the bound of relevance. Only a
relevant change is a regression or an improvement, and only a proof of sameness is equivalent.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from hybridwatch.analysis import doubt
from hybridwatch.analysis.families import family_of
from hybridwatch.analysis.multiplicity import FALSE_DISCOVERY_RATE, controlled
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.verdict import Comparison, Verdict
from hybridwatch.metric import Kind, Metric


def judge_together(
    drafts: Sequence[Comparison],
    level: float = FALSE_DISCOVERY_RATE,
    action_of: Callable[[Metric], Action] = lambda _: Action.BLOCK,
) -> tuple[tuple[Comparison, ...], int]:
    """Judge all comparisons of a report, each family of tests under a control of its own.

    Args:
        drafts: As ``compare`` made them; those without a p-value keep their verdict.
        level: Below it a p-value of timed trials counts; less than 0.05 for one of several looks.
        action_of: What the policy makes of a regression of a metric.

    Returns:
        The comparisons in the same order, and how many p-values were controlled.
    """
    drafts = [replace(d, equivalence_p=_over_looks(d, d.equivalence_p, level)) for d in drafts]
    alone = [_over_looks(draft, draft.p_value, level) for draft in drafts]
    families: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, (draft, p_value) in enumerate(zip(drafts, alone, strict=True)):
        if p_value is not None:
            name = family_of(draft.metric, action_of(draft.metric))
            families[name].append((place, p_value))
    judged = list(drafts)
    for name, members in families.items():
        p_values = [p_value for _, p_value in members]
        both = zip(members, controlled(p_values), strict=True)
        for (place, p_value), (p_adjusted, p_holm) in both:
            draft = replace(drafts[place], family=name, p_adjusted=p_adjusted, p_holm=p_holm)
            judged[place] = _judge(draft, p_value, p_adjusted, len(members))
    return tuple(judged), sum(map(len, families.values()))


def _over_looks(draft: Comparison, p_value: float | None, level: float) -> float | None:
    """Scale a p-value of one look so that 0.05 is the bound again, as for all others.

    Answers are asked for once, before the first look: what does not grow is not looked at again.
    """
    if p_value is None or draft.metric.kind is Kind.PROPORTION:
        return p_value
    return min(1.0, p_value * (FALSE_DISCOVERY_RATE / level))


def _judge(draft: Comparison, p_value: float, p_adjusted: float, tests: int) -> Comparison:
    significant = p_adjusted < FALSE_DISCOVERY_RATE
    if significant and _is_relevant(draft):
        verdict = Verdict.REGRESSION if _is_worse(draft) else Verdict.IMPROVEMENT
        return replace(draft, verdict=verdict, trials_needed=None)
    if draft.equivalence_p is not None and draft.equivalence_p < FALSE_DISCOVERY_RATE:
        return replace(draft, verdict=Verdict.EQUIVALENT, trials_needed=None)
    doubts = draft.doubts
    if significant and draft.relevance > draft.metric.margin:
        # Runs differ by more than the margin, a doubt already; no number of trials settles that.
        draft = replace(draft, trials_needed=None)
    elif significant:
        doubts = (*doubts, doubt.about_margin(draft.metric.kind))
    elif p_value < FALSE_DISCOVERY_RATE:
        doubts = (*doubts, doubt.about_multiplicity(p_value, tests, draft.metric.kind))
    return replace(draft, verdict=Verdict.INCONCLUSIVE, doubts=doubts)


def _is_relevant(draft: Comparison) -> bool:
    # No relative change exists from a baseline of 0; whatever is significant there matters.
    return draft.effect is None or abs(draft.effect) > draft.relevance


def _is_worse(draft: Comparison) -> bool:
    if draft.baseline is None or draft.contender is None:
        raise ValueError("a comparison with a p-value has two sides")
    change = draft.effect
    if change is None:
        change = draft.contender.center - draft.baseline.center
    return draft.metric.better.is_worse(change)
