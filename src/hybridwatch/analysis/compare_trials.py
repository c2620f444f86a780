"""Times, rates and counts: one number per trial, within blocks where both sides alternated."""

from dataclasses import replace
from typing import Final

from hybridwatch.analysis import doubt, power, rank, signed_rank
from hybridwatch.analysis.blocks import Blocks
from hybridwatch.analysis.verdict import Comparison, Design, Summary

COUNT_BAND: Final = 0.005
"""Counts have no margin: any significant change is relevant. To call two counts the same still
takes a band; half a per cent is one host read in 200 steps."""

_BY_BLOCK: Final = (
    "The two trials of a block share the state of the machine, so the change is the typical one "
    "within a block; without a change either trial is as likely to be the larger, in every metric."
)
_BY_SIDE: Final = "Trials are independent of each other, and those of both sides scatter alike."


def compare_trials(
    draft: Comparison, left: Summary, right: Summary, blocks: Blocks | None
) -> Comparison:
    """Compare two sides that have values.

    Args:
        draft: What is known already, the bound of relevance included.
        left: The baseline's trials.
        right: The contender's.
        blocks: How they pair; ``None`` when they do not.
    """
    if blocks is not None and blocks.n >= signed_rank.SETTLING_BLOCKS and blocks.has_ratios:
        return _within_blocks(draft, blocks)
    return _as_two_groups(draft, left, right)


def _within_blocks(draft: Comparison, blocks: Blocks) -> Comparison:
    ratios = blocks.log_ratios
    change = signed_rank.estimate(ratios, _band(draft))
    return replace(
        draft,
        effect=change.effect,
        interval=change.interval,
        equivalence_p=change.equivalence_p,
        trials_needed=power.blocks_to_settle(ratios, _band(draft)),
        minimum_detectable_effect=power.detectable_in_blocks(ratios, draft.relevance),
        test="sign-flip",
        design=Design.PAIRED,
        assumption=_BY_BLOCK,
        pairs=blocks.n,
        ratios=ratios,
    )


def _as_two_groups(draft: Comparison, left: Summary, right: Summary) -> Comparison:
    needed = power.trials_to_settle(left.values, right.values, _band(draft))
    if min(left.n, right.n) < rank.SETTLING_TRIALS:
        # A test that cannot reject would only weaken the others in the control (Tarone 1990).
        return replace(draft, trials_needed=needed or doubt.ADVISED_TRIALS)
    if draft.restless:
        # Nothing pairs a trial with what the neighbours did to it, nor to the processor time.
        interval = rank.ratio_interval(left.values, right.values)
        return doubt.added(replace(draft, interval=interval, trials_needed=needed), doubt.HELD_BACK)
    return replace(
        draft,
        interval=rank.ratio_interval(left.values, right.values),
        p_value=rank.rank_p(left.values, right.values),
        equivalence_p=rank.equivalence_p(left.values, right.values, _band(draft)),
        minimum_detectable_effect=power.detectable_change(
            left.values, right.values, draft.relevance
        ),
        trials_needed=needed,
        test="Mann-Whitney",
        design=Design.UNPAIRED,
        assumption=_BY_SIDE,
    )


def _band(draft: Comparison) -> float:
    return draft.metric.margin or COUNT_BAND
