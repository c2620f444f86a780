"""One subject, two sides: every number of a comparison except those that need the whole report.

Verdicts that no other test can touch (exact, missing, failed, not comparable) are given here. The
others stay inconclusive until ``judge`` has the adjusted p-value. Counts that come out the same in
every trial of a side need no test: 3 is not 5, though a rank test of five trials a side says p
0.008 at best, as one of twenty tests of a report nothing at all.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from hybridwatch.analysis import doubt, paired_proportion, power, rank, signed_rank
from hybridwatch.analysis.changed_tokens import ChangedTokens
from hybridwatch.analysis.machine_state import is_noisy_machine
from hybridwatch.analysis.pair import Blocks, Pair, ReducedSide
from hybridwatch.analysis.paired_proportion import Answers, list_answers, pair
from hybridwatch.analysis.rank import change_between
from hybridwatch.analysis.run_noise import FEWEST_RUNS, least_noise, reach_of, start_noise
from hybridwatch.analysis.subject import role_between
from hybridwatch.analysis.verdict import BY_START, Comparison, Design, Interval, Summary, Verdict
from hybridwatch.metrics import Kind, Metric
from hybridwatch.records.identity import Role

_REPEATS_EXACTLY: Final = (
    "The count is the same in every trial of a side, so it has no noise and needs no test."
)
_REPEATED_BEFORE: Final = (
    f"The count is the same in {FEWEST_RUNS} earlier runs of a build and more, but for one change "
    "that lasts, so it has no noise and needs no test."
)

COUNT_BAND: Final = 0.005
"""Counts have no margin: any significant change is relevant. To call two counts the same still
takes a band; half a per cent is one host read in 200 steps."""
_BY_BLOCK: Final = (
    "The two trials of a block share the state of the machine, so the change is the typical one "
    "within a block; without a change either trial is as likely to be the larger, in every metric."
)
_BY_START: Final = (
    "Blocks of one start of the engines share its luck, so each start counts once, by the mean "
    "change within its blocks; without a change either engine is as likely to be the slower one."
)
_BY_SIDE: Final = "Trials are independent of each other, and those of both sides scatter alike."
_BY_INTERVAL: Final = (
    "Samples of a run are independent, logarithms of medians are normal, and runs differ by the "
    "noise between them."
)
_NO_NOISE: Final = "A count of broken rules has no noise: one trial tells."
_NOT_COUNTED: Final = (
    "The baseline was measured before this was counted, so the 0 that is expected of every engine "
    "stands for it."
)
_QUESTIONS: Final = (
    "Questions are answered independently of each other; without a change as many answers are lost "
    "as won."
)
_ONE_ARITHMETIC: Final = (
    "The sides round alike but for which requests share a step, so only a choice between tokens "
    "within {bound:g} nats of each other may fall otherwise: one request tells."
)
_TWO_ARITHMETICS: Final = (
    "The sides may round sums otherwise, so a choice between tokens within {bound:g} nats of each "
    "other may fall otherwise; any other change is real."
)


def compare_repeated(
    draft: Comparison, left: Summary, right: Summary, *, before: bool = False
) -> Comparison:
    """Compare two sides whose trials, or earlier runs (``before``), each repeat one count.

    ``draft`` has what is known already, the bound of relevance included. The comparison gets a
    verdict and no p-value: the report's control leaves it alone.
    """
    return replace(
        draft,
        verdict=_verdict(draft, left.center, right.center),
        test="exact",
        design=Design.EXACT,
        assumption=_REPEATED_BEFORE if before else _REPEATS_EXACTLY,
    )


def _verdict(draft: Comparison, old: float, new: float) -> Verdict:
    size = None if draft.effect is None else abs(draft.effect)
    worse = draft.metric.better.is_worse(new - old)
    if size is not None and size <= draft.metric.margin:
        known_worse = worse and size > reach_of(draft.noise)
        return Verdict.WORSE_WITHIN if known_worse else Verdict.EQUIVALENT
    if old == new:
        return Verdict.EQUIVALENT
    if size is not None and size <= draft.relevance:
        # Runs of these builds differ by so much without a change, a doubt already.
        return Verdict.INCONCLUSIVE
    return Verdict.REGRESSION if worse else Verdict.IMPROVEMENT


def compare_trials(draft: Comparison, left: Summary, right: Summary, pair: Pair) -> Comparison:
    """Compare two sides that have values; ``draft`` has the bound of relevance already."""
    blocks = pair.blocks
    if pair.intervals is not None:
        return _by_intervals(draft, left, right, pair.intervals)
    if blocks is not None and blocks.n >= signed_rank.SETTLING_BLOCKS and blocks.has_ratios:
        return _within_blocks(draft, blocks)
    return _as_two_groups(draft, left, right, single=pair.has_single_values_of_asv)


def _within_blocks(draft: Comparison, blocks: Blocks) -> Comparison:
    by_start = blocks.start_ratios
    ratios = by_start or blocks.log_ratios
    needed = power.blocks_to_settle(ratios, find_band(draft))
    if needed is not None:
        needed = math.ceil(needed * blocks.n / len(ratios))
    return replace(
        draft,
        effect=signed_rank.typical_change(ratios),
        interval=signed_rank.change_interval(ratios),
        equivalence_p=signed_rank.equivalence_p(ratios, find_band(draft)),
        trials_needed=needed,
        minimum_detectable_effect=power.detectable_in_blocks(ratios, draft.relevance),
        test=BY_START if by_start else "sign-flip",
        design=Design.PAIRED,
        assumption=_BY_START if by_start else _BY_BLOCK,
        pairs=blocks.n,
        ratios=ratios,
    )


def _by_intervals(
    draft: Comparison, left: Summary, right: Summary, intervals: tuple[Interval, Interval]
) -> Comparison:
    found = change_between(left.center, right.center, intervals, draft.noise or 0.0)
    return replace(
        draft,
        interval=found.interval,
        p_value=found.p_value,
        equivalence_p=found.equivalence_p(find_band(draft)),
        minimum_detectable_effect=found.detectable(draft.relevance),
        test="intervals",
        design=Design.INTERVALS,
        assumption=_BY_INTERVAL,
    )


def _as_two_groups(draft: Comparison, left: Summary, right: Summary, *, single: bool) -> Comparison:
    needed = power.trials_to_settle(left.values, right.values, find_band(draft))
    if min(left.n, right.n) < rank.SETTLING_TRIALS:
        if single:
            return draft
        # A test that cannot reject would only weaken the others in the control (Tarone 1990).
        return replace(draft, trials_needed=needed or power.ENOUGH)
    if draft.restless:
        # Nothing pairs a trial with what the neighbours did to it, nor to the processor time.
        interval = rank.ratio_interval(left.values, right.values)
        return doubt.added(replace(draft, interval=interval, trials_needed=needed), doubt.HELD_BACK)
    return replace(
        draft,
        interval=rank.ratio_interval(left.values, right.values),
        p_value=rank.rank_p(left.values, right.values),
        equivalence_p=rank.equivalence_p(left.values, right.values, find_band(draft)),
        minimum_detectable_effect=power.detectable_change(
            left.values, right.values, draft.relevance
        ),
        trials_needed=needed,
        test="Mann-Whitney",
        design=Design.UNPAIRED,
        assumption=_BY_SIDE,
    )


def find_band(draft: Comparison) -> float:
    """Give the half-width of the band in which two sides count as the same."""
    return draft.metric.margin or COUNT_BAND


def compare(pair: Pair, noise: float | None = None) -> Comparison:
    """Compare two sides that are known to be comparable.

    ``noise``, how much runs of these builds scatter from one to the next, matters only where the
    sides are of two runs. The comparison has its verdict, or a p-value for ``judge``.
    """
    if noise == 0 and not pair.of_one_run:
        pair = replace(pair, repeated_before=True)
    timed = pair.subject.metric.kind.has_noise and not pair.repeats
    unknown = timed and not pair.of_one_run and noise is None
    if least := least_noise(pair.subject.metric):
        noise = max(least, noise or 0.0)
    known = start_noise(pair.subject.metric) if pair.of_one_run else noise
    draft = replace(_draft(pair, known), of_unknown_runs=unknown)
    of_start = draft.metric.is_of_start  # of which the work of a step says nothing
    if timed and pair.of_one_run and draft.metric.hangs_on_the_clock and not of_start:
        draft = replace(draft, restless=is_noisy_machine(pair))
    draft = doubt.added(draft, *doubt.about_pair(pair, draft))
    left, right = pair.baseline.summary, pair.contender.summary
    if left is None or right is None:
        return _compare_absent(draft, pair)
    match pair.subject.metric.kind:
        case Kind.EXACT:
            judged = compare_exact(draft, left, right)
            # An engine against itself has no baseline but the rule.
            role = role_between(*(side.side for side in pair.sides))
            broken = (left.center or right.center) and role is Role.A_A
            return replace(judged, verdict=Verdict.REGRESSION) if broken else judged
        case Kind.PROPORTION:
            task = pair.subject.metric.id.partition(".")[2]
            return _compare_answers(draft, *(list_answers(side.side, task) for side in pair.sides))
        case Kind.COUNT if pair.repeats:
            return compare_repeated(draft, left, right, before=pair.repeated_before)
        case Kind.COUNT | Kind.RATE | Kind.TIME:
            compared = compare_trials(draft, left, right, pair)
            return replace(compared, trials_needed=None) if of_start else compared


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
        relevance=max(metric.bound, reach_of(noise)),
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
    if draft.contender is not None and _was_not_counted_yet(pair.baseline, draft.metric):
        expected = Summary(0.0, ())
        held = replace(draft, baseline=expected, effect=draft.contender.center)
        return compare_exact(held, expected, draft.contender, _NOT_COUNTED)
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


def _was_not_counted_yet(side: ReducedSide, metric: Metric) -> bool:
    """Whether a side was measured before there was a contract; else it has a reason or failed."""
    known = side.summary or side.failures or side.broken
    unsupported = any(metric.id in trial.unsupported for trial in side.trials)
    return metric.kind is Kind.EXACT and bool(side.trials) and not known and not unsupported


def compare_exact(
    draft: Comparison, left: Summary, right: Summary, assumption: str = _NO_NOISE
) -> Comparison:
    """Give two counts without noise their verdict; ``assumption`` is what is taken for granted."""
    doubts = (
        *doubt.about_constancy("baseline", left.values),
        *doubt.about_constancy("contender", right.values),
    )
    varies = any(len(set(side.values)) > 1 for side in (left, right))
    if left.center == right.center == 0:
        verdict = Verdict.EQUIVALENT
    elif left.center == right.center or (left.center and right.center and varies):
        verdict = Verdict.INCONCLUSIVE
    elif draft.metric.better.is_worse(right.center - left.center):
        verdict = Verdict.REGRESSION
    else:
        verdict = Verdict.IMPROVEMENT
    judged = replace(
        draft, verdict=verdict, test="exact", design=Design.EXACT, assumption=assumption
    )
    return doubt.added(judged, *doubts)


def _compare_answers(draft: Comparison, left: Answers, right: Answers) -> Comparison:
    if not left.by_key or not right.by_key:
        return doubt.added(draft, doubt.NO_ANSWERS)
    draft = replace(draft, baseline=_share(left), contender=_share(right))
    if reasons := doubt.about_questions(left, right):
        return doubt.added(replace(draft, verdict=Verdict.NOT_COMPARABLE, effect=None), *reasons)
    pairs, flips = pair(left, right)
    margin, discordant = draft.metric.margin, pairs.lost + pairs.won
    draft = doubt.added(draft, *doubt.about_losses(pairs))
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


def compare_tokens(metric: Metric, tokens: ChangedTokens) -> Comparison:
    """Give two sides' contract trials a verdict: the contender counts requests that changed."""
    left = Summary(0.0, (0.0,) * len(tokens.counts))
    right = Summary(max(tokens.counts), tokens.counts)
    assumption = (_ONE_ARITHMETIC if tokens.one_arithmetic else _TWO_ARITHMETICS).format(
        bound=tokens.bound
    )
    draft = Comparison(
        metric=metric,
        statistic=metric.kind.statistic,
        baseline=left,
        contender=right,
        effect=right.center,
        relevance=metric.bound,
        changes=tokens.changes,
    )
    judged = compare_exact(draft, left, right, assumption)
    return doubt.added(judged, *_doubts(tokens))


def _doubts(tokens: ChangedTokens) -> Iterator[str]:
    ties = tokens.near_ties
    if ties:
        widest = max(max(one.baseline_gap or 0.0, one.contender_gap or 0.0) for one in ties)
        yield (
            f"{len(ties)} of {tokens.requests} requests differ by near ties, which do not count "
            f"(at most {widest:g} nats apart, bound {tokens.bound:g}): the oracle of the scenario, "
            "if it has one, says whether either side is wrong."
        )
    if tokens.wrong_before:
        yield (
            f"{tokens.wrong_before} requests are left out, whose tokens are wrong on the baseline "
            "already: compare with a baseline that has contract.wrong_tokens 0."
        )
