"""Counts that come out the same in every trial of a side: nothing there is left to chance.

A rank test of five trials of 3 against five of 5 says p 0.008 at best, as one of twenty tests of a
report nothing at all. But a count that never varies needs no test: 3 is not 5.
"""

from dataclasses import replace
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Design, Summary, Verdict

_REPEATS_EXACTLY: Final = (
    "The count is the same in every trial of a side, so it has no noise and needs no test."
)


def compare_repeated(draft: Comparison, left: Summary, right: Summary) -> Comparison:
    """Compare two sides whose trials each repeat one count (``Pair.repeats``).

    Args:
        draft: What is known already, the bound of relevance included.
        left: The baseline's trials.
        right: The contender's.

    Returns:
        A comparison with its verdict and without a p-value: the report's control leaves it alone.
    """
    return replace(
        draft,
        verdict=_verdict(draft, left.center, right.center),
        test="exact",
        design=Design.EXACT,
        assumption=_REPEATS_EXACTLY,
    )


def _verdict(draft: Comparison, old: float, new: float) -> Verdict:
    size = None if draft.effect is None else abs(draft.effect)
    if old == new or (size is not None and size <= draft.metric.margin):
        return Verdict.EQUIVALENT
    if size is not None and size <= draft.relevance:
        # Runs of these builds differ by so much without a change, a doubt already.
        return Verdict.INCONCLUSIVE
    worse = draft.metric.better.is_worse(new - old)
    return Verdict.REGRESSION if worse else Verdict.IMPROVEMENT
