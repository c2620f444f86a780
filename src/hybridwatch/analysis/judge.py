"""The verdict of a comparison, once its p-value has passed the report's control.

Significant is beyond noise; relevant is beyond noise *and* beyond the bound of relevance. Only a
relevant change is a regression or an improvement, and only a proof of sameness is equivalent.

Without control a report of twenty tests cries wolf about every second time even when nothing
changed. Benjamini-Hochberg (1995) keeps the share of false discoveries small; it holds for
independent tests and for the positive dependence that latencies of the same requests have
(Benjamini and Yekutieli 2001). Holm (1979) keeps even one false discovery unlikely, whatever the
dependence. Only tests that answer one question for one reader stand together, since each costs the
others some of their power.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from hybridwatch.analysis import doubt
from hybridwatch.analysis.machine_state import DECIDES, noisy_p
from hybridwatch.analysis.policy import Action
from hybridwatch.analysis.run_noise import reach_of
from hybridwatch.analysis.signed_rank import BlockRow, Tail, flip_p
from hybridwatch.analysis.verdict import BY_START, Comparison, Design, Family, Verdict
from hybridwatch.metrics import Kind, Metric

_LENIENT: Final = {Action.BLOCK: "", Action.WARN: " (only warned of)", Action.WATCH: " (watched)"}
FALSE_DISCOVERY_RATE: Final = 0.05
FIRST_LEVEL: Final = 0.1
"""Of the first of two looks, both of which must say so: false alarms are then 0.1 x 0.05, a night
of six scenarios in 34. More of them are measured again, and fewer changes are missed, than at 0.05
(lab: ``calibration.nights``)."""
_TWICE: Final = (
    "Measured twice, each time on new engines: only what both times say is a change, and p is the "
    "larger; the first is held against 0.1 and shown as if that were 0.05."
)

Looks: TypeAlias = tuple[Sequence[Comparison], Sequence[Comparison]]
"""Of what was timed and measured again, the drafts of the first trials alone and of the second."""


def find_family(metric: Metric, action: Action = Action.BLOCK) -> str:
    """Name the family of a metric's tests."""
    if metric.is_of_start:  # another question than speed, to which it costs no power
        return "start" + _LENIENT[action]
    return ("accuracy" if metric.kind is Kind.PROPORTION else "speed") + _LENIENT[action]


def build_families(comparisons: Iterable[Comparison]) -> tuple[Family, ...]:
    """Count the tests of each family, in order of appearance."""
    found = Counter(one.family for one in comparisons if one.family)
    return tuple(Family(name, tests) for name, tests in found.items())


def adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values, in their order, so that those below the rate can be called discoveries."""
    shares = len(p_values) / np.arange(1, len(p_values) + 1)
    return _stepped(p_values, shares, lambda p: np.minimum.accumulate(p[::-1])[::-1])


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values, in their order; none is below its Benjamini-Hochberg counterpart."""
    return _stepped(p_values, np.arange(len(p_values), 0, -1), np.maximum.accumulate)


def _stepped(
    p_values: Sequence[float], factors: Any, step: Callable[[Any], Any]
) -> tuple[float, ...]:
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, step(np.asarray(p_values, dtype=float)[order] * factors))
    return tuple(float(p) for p in adjusted)


@dataclass(frozen=True, slots=True)
class _PValues:
    """The p-values of one test: by itself, and after the controls of verdict and gate."""

    alone: float
    adjusted: float
    holm: float

    def larger(self, other: "_PValues") -> "_PValues":
        """Give the larger of each: what both tests say."""
        return _PValues(*map(max, astuple(self), astuple(other)))


_SAYS_NOTHING: Final = _PValues(1.0, 1.0, 1.0)


def judge_together(
    drafts: Sequence[Comparison],
    level: float = FALSE_DISCOVERY_RATE,
    action_of: Callable[[Metric], Action] = lambda _: Action.BLOCK,
    looks: Looks | None = None,
) -> tuple[tuple[Comparison, ...], int]:
    """Judge all comparisons of a report, each family of tests under a control of its own.

    ``drafts`` are as ``compare`` made them; those without a p-value keep their verdict. A p-value
    of timed trials counts below ``level``, which is less than 0.05 for one of several looks.
    ``action_of`` is what the policy makes of a regression of a metric. ``looks`` are set where what
    was timed was measured again, at the usual level.

    Gives the comparisons in the same order, and how many p-values were controlled.
    """
    if looks is not None:
        return _judge_twice(drafts, looks, action_of)
    drafts = [_over_looks(draft, level) for draft in drafts]
    families: defaultdict[str, list[int]] = defaultdict(list)
    for place, draft in enumerate(drafts):
        if draft.p_value is not None or draft.ratios:
            families[find_family(draft.metric, action_of(draft.metric))].append(place)
    judged = list(drafts)
    for name, members in families.items():
        found = _controlled([drafts[place] for place in members])
        for place, p_values in zip(members, found, strict=True):
            judged[place] = _judge(
                drafts[place], name, p_values, len(members), _factor(drafts[place], level)
            )
    return tuple(judged), sum(map(len, families.values()))


def _judge_twice(
    drafts: Sequence[Comparison], looks: Looks, action_of: Callable[[Metric], Action]
) -> tuple[tuple[Comparison, ...], int]:
    """Judge a report whose times, rates and counts were measured again.

    An intersection-union test (Berger, Technometrics 24, 1982): a change must show in both looks.
    The second tests only what the first has named, in the direction seen.
    """
    judged, _ = judge_together(drafts, action_of=action_of)
    first = {_name(one): one for one in judge_together(looks[0], FIRST_LEVEL, action_of)[0]}
    named = [
        one
        for one in looks[1]
        if (found := _p_values(first[_name(one)])) and found.adjusted < FALSE_DISCOVERY_RATE
    ]
    second = {_name(one): one for one in judge_together(named, action_of=action_of)[0]}
    sizes = Counter(one.family for one in judged)
    both = tuple(
        _over_both(draft, one, sizes[one.family], first[name], second.get(name))
        if one.family and (name := _name(draft)) in first
        else one
        for draft, one in zip(drafts, judged, strict=True)
    )
    return both, sum(bool(one.family) for one in both)


def _name(one: Comparison) -> tuple[str, str]:
    return one.metric.id, one.statistic


def _over_both(
    draft: Comparison, judged: Comparison, tests: int, first: Comparison, second: Comparison | None
) -> Comparison:
    """Judge one draft by its two looks; ``judged`` is what all trials together would say."""
    found = _p_values(first)
    if found is None:
        # Too few trials to test in the first look; the second tests what that has named.
        keys = ("test", "design", "assumption")
        own = {key: getattr(first, key) for key in keys}
        return replace(draft, p_value=None, equivalence_p=None, **own)
    draft = replace(draft, assumption=f"{draft.assumption} {_TWICE}")
    if second is not None:
        again = _p_values(second)
        if again is None:
            # Nothing was refuted: the first look stands alone, at the level of one.
            factor = FIRST_LEVEL / FALSE_DISCOVERY_RATE
            again = _PValues(found.alone, found.adjusted * factor, found.holm * factor)
        elif _is_worse(first) != _is_worse(second):
            again = _SAYS_NOTHING
        found = found.larger(again)
    in_both = found.adjusted < FALSE_DISCOVERY_RATE
    if draft.test == BY_START and (whole := _p_values(judged)) is not None:
        # Where either look has too few starts for a test of its own, both together may have enough.
        found = found.larger(whole)
    both = _judge(draft, judged.family, found, tests, 1.0)
    if second is None or not _is_relevant(first):
        return both
    tested = _p_values(second) is not None
    if tested and found.adjusted < FALSE_DISCOVERY_RATE:
        return both
    both = replace(both, verdict=Verdict.INCONCLUSIVE) if tested else both
    if tested and in_both:
        return doubt.added(both, doubt.STARTS_DIFFER)
    return doubt.added(both, doubt.about_second_look(first, second, tested=tested))


def _p_values(look: Comparison) -> _PValues | None:
    """Give what a look says of a change; ``None`` where it could not test."""
    if look.p_value is not None and look.p_adjusted is not None and look.p_holm is not None:
        return _PValues(look.p_value, look.p_adjusted, look.p_holm)
    if look.design is not Design.EXACT:
        return None
    changed = look.verdict in {Verdict.REGRESSION, Verdict.IMPROVEMENT}
    return _PValues(0.0, 0.0, 0.0) if changed else _SAYS_NOTHING


def _over_looks(draft: Comparison, level: float) -> Comparison:
    """Scale what is held against 0.05, so that it is the bound again at one of several looks."""
    if draft.equivalence_p is None:
        return draft
    return replace(draft, equivalence_p=min(1.0, draft.equivalence_p * _factor(draft, level)))


def _factor(draft: Comparison, level: float) -> float:
    # Answers are given once, before the first look: what does not grow is looked at once.
    return 1.0 if draft.metric.kind is Kind.PROPORTION else FALSE_DISCOVERY_RATE / level


def _judge(
    draft: Comparison, family: str, p_values: _PValues, tests: int, factor: float
) -> Comparison:
    p_value, p_adjusted, p_holm = (min(1.0, p * factor) for p in astuple(p_values))
    draft = replace(
        draft, family=family, p_value=p_values.alone, p_adjusted=p_adjusted, p_holm=p_holm
    )
    significant = p_adjusted < FALSE_DISCOVERY_RATE
    relevant, worse = significant and _is_relevant(draft), significant and _is_worse(draft)
    same = draft.equivalence_p is not None and draft.equivalence_p < FALSE_DISCOVERY_RATE
    within = same and (not draft.restless or draft.metric.id == DECIDES)
    if (relevant or (worse and within)) and draft.of_unknown_runs and draft.noise is None:
        # How much two runs of one engine differ in it is not known, and no trials show it.
        draft = doubt.added(draft, doubt.UNKNOWN_RUNS)
        return replace(draft, verdict=Verdict.INCONCLUSIVE, trials_needed=None)
    if relevant:
        verdict = Verdict.REGRESSION if worse else Verdict.IMPROVEMENT
        return replace(draft, verdict=verdict, trials_needed=None)
    if within:
        worse = worse and abs(draft.effect or 0.0) > reach_of(draft.noise)
        verdict = Verdict.WORSE_WITHIN if worse else Verdict.EQUIVALENT
        return replace(draft, verdict=verdict, trials_needed=None)
    doubts = draft.doubts
    if significant and draft.relevance > draft.metric.margin:
        # Runs differ by more than the margin, a doubt already; no number of trials settles that.
        draft = replace(draft, trials_needed=None)
    elif significant:
        doubts = (*doubts, doubt.about_margin(draft.metric.kind))
    elif draft.restless and (same or p_value < FALSE_DISCOVERY_RATE):
        doubts = (*doubts, doubt.HELD_BACK)
    elif p_value < FALSE_DISCOVERY_RATE:
        doubts = (*doubts, doubt.about_multiplicity(p_value, tests, draft.metric.kind))
    return replace(draft, verdict=Verdict.INCONCLUSIVE, doubts=doubts)


def _is_relevant(draft: Comparison) -> bool:
    # No relative change exists from a baseline of 0; whatever is significant there matters.
    return draft.effect is None or abs(draft.effect) > draft.relevance


def _controlled(drafts: Sequence[Comparison]) -> tuple[_PValues, ...]:
    """Adjust the tests of one family, each of which has a p-value or ratios.

    What was timed within blocks is one joint test (``flip_p``). Whatever else was timed is adjusted
    by Holm separately, and each part gets the share of the level that its rows are of all.
    """
    joint = [at for at, draft in enumerate(drafts) if draft.ratios]
    apart = [at for at, draft in enumerate(drafts) if not draft.ratios]
    p_values = [drafts[at].p_value or 0.0 for at in apart]
    found: dict[int, _PValues] = {}
    if joint:
        for at, p in zip(apart, holm(p_values) if apart else (), strict=True):
            p = min(1.0, p * len(drafts) / len(apart))
            found[at] = _PValues(drafts[at].p_value or 0.0, p, p)
        found |= _within_blocks(drafts, [at for at in joint if not drafts[at].restless], flip_p)
        restless = [at for at in joint if drafts[at].restless]
        metrics = [drafts[at].metric for at in restless]
        found |= _within_blocks(drafts, restless, partial(noisy_p, metrics))
    else:
        adjusted = zip(apart, p_values, adjust(p_values), holm(p_values), strict=True)
        found = {at: _PValues(*of_each) for at, *of_each in adjusted}
    return tuple(found[at] for at in range(len(drafts)))


def _within_blocks(
    drafts: Sequence[Comparison],
    part: Sequence[int],
    test: Callable[[Sequence[BlockRow]], Sequence[tuple[Tail, Tail]]],
) -> dict[int, _PValues]:
    if not part:
        return {}
    found = {}
    for at, (worse, better) in zip(part, test([_row(drafts[at]) for at in part]), strict=True):
        tail = worse if _is_worse(drafts[at]) else better
        p = min(1.0, tail.adjusted * len(drafts) / len(part))
        found[at] = _PValues(tail.alone, p, p)
    return found


def _row(draft: Comparison) -> BlockRow:
    return BlockRow(
        ratios=tuple(draft.metric.better.worse * ratio for ratio in draft.ratios),
        shares_variance=draft.metric.kind is not Kind.COUNT,
    )


def _is_worse(draft: Comparison) -> bool:
    if draft.baseline is None or draft.contender is None:
        raise ValueError("a comparison with a p-value has two sides")
    change = draft.contender.center - draft.baseline.center
    return draft.metric.better.is_worse(change if draft.effect is None else draft.effect)
