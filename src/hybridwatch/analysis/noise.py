"""Which red verdicts of single sessions stand against chance, such as the luck of a start.

All trials of a session share the luck of its start, so that no number of them separates it from a
change of the code (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013). How
much starts differ is learned from differences of neighbouring sessions of the same question, which
a lasting change meets once. The baseline is the same build every time: where its own level is off,
so is the effect, and that much is taken off (a control variate).

A red stands if it is ``_BAR`` standard errors away from no change, alone or together with the
sessions after it, up to ten in a row: what repeats, stands. Where a few starts are far slower than
the others, a red waits while as many slow starts in a row may be chance.

Shares of right answers do not hang on the start, but a test at 5 % every night calls equal engines
worse some three times in 90 nights. Their reds stand in the same manner, from ``_ANSWERS_BAR`` on.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from hybridwatch.analysis.change_point.noise import compute_medians

Array = npt.NDArray[np.float64]

_BAR: Final = 4.75
"""So that no luck stands in 1,200 questions of 90 nights (``tests/start_luck_worlds.py``)."""
_ANSWERS_BAR: Final = 4.25
"""So that at most one of 1,200 such questions stands by chance (the same file)."""
_LIKELY: Final = 2.0
"""Standard errors that are enough where that night's build got slower on another testbed."""
_YOUNG: Final = 3.0
"""Over the number of differences: by how much more the bar is raised while little is known."""
_TOGETHER: Final = 10
"""Sessions that may speak together."""
LEARNED_FROM: Final = 8
"""Differences from which a question's own say how much starts differ; as much as that many of its
own say those of all that is alike."""
_FEWEST: Final = 5
"""Differences of these that count."""
_UNKNOWN: Final = 0.03
"""Standard deviation between starts that is assumed of a young question, if the same metric of the
testbed's other scenarios, and its own few sessions, do not differ by more."""
_LATEST: Final = 60
"""Earlier sessions that count."""
_USUAL: Final = 0.9
"""Share of values that bound the others: a change of level is one difference in many."""
_CLIPPED: Final = 1.2
"""What is lost of a normal variance by bounding a tenth."""
_OF_LUCK: Final = 3.0
"""Standard deviations up to which the baseline's level is off by luck; further, the machine is."""
_CHANCE: Final = 1e-5
"""Chance of as many slow starts in a row, below which they are a change."""
_AS_BAD: Final = 0.75
"""Share of a change that an earlier session has to be off by to count as a slow start."""
_ORDINARY: Final = 0.7
"""Share of sessions that have the luck of every start; where more are off, all starts differ."""
_BEYOND: Final = 2.5
"""Times that luck that a slow start is off by."""
_BRIEF: Final = 3
"""Sessions in a row that may have been slow starts; more are a change that was mended."""
_PRIOR_SESSIONS: Final = 20
"""Sessions of a question itself that say as much of it as all that is alike."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """What the sessions of one question say, oldest first; logarithms, upwards is worse.

    ``effects`` are contender over baseline, with standard ``errors`` from the trials; ``baselines``
    are its levels.
    """

    moments: npt.NDArray[np.int64]
    effects: Array
    errors: Array
    baselines: Array
    reds: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Differences:
    """Of neighbouring sessions; ``variances`` is what trials explain of the effects' squares."""

    effects: Array
    variances: Array
    baselines: Array


@dataclass(frozen=True, slots=True)
class _Luck:
    """How much starts differ.

    Attributes:
        share: Of the baseline's distance from its usual level that is luck of its start.
        left: Variance between starts once that is taken off; ``whole`` before.
        baseline: Standard deviation of the baseline's level.
        bar: Standard errors at which a change stands.
    """

    share: float
    left: float
    whole: float
    baseline: float
    bar: float


_OF_ANSWERS: Final = _Luck(0.0, 0.0, 0.0, 0.0, _ANSWERS_BAR)


def lasting_reds(own: Sessions, alike: Sequence[Sessions]) -> npt.NDArray[np.bool_]:
    """Say which reds stand against the luck of starts; ``alike`` share metric and testbed."""

    @cache
    def luck_before(end: int) -> _Luck:
        return _luck_before(own, end, alike)

    def luck(first: int, last: int) -> _Luck:
        # Where little is known before the first of them, those after it count, too.
        return luck_before(max(first, min(last, LEARNED_FROM)))

    return _standing(own, luck, lambda *ends: _may_be_slow_starts(own, ends[0], ends[1], alike))


def lasting_losses(own: Sessions) -> npt.NDArray[np.bool_]:
    """Say which reds of answers stand against chance; effects are differences of shares."""
    return _standing(own, lambda *_: _OF_ANSWERS, lambda *_: False)


def _standing(
    own: Sessions, luck_before: Callable[[int, int], _Luck], excused: Callable[[int, int], bool]
) -> npt.NDArray[np.bool_]:
    stands = np.zeros(len(own.reds), dtype=np.bool_)
    for first in np.flatnonzero(own.reds).tolist():
        for ahead in np.flatnonzero(own.reds[first : first + _TOGETHER]).tolist():
            last = first + ahead
            if stands[first : last + 1].all():
                continue
            luck = luck_before(first, last)
            if _strength(own, first, last, luck) >= luck.bar and not excused(first, last):
                stands[first : last + 1] = True
    return stands & own.reds


def likely_reds(own: Sessions, alike: Sequence[Sessions]) -> npt.NDArray[np.bool_]:
    """Say which reds stand where that night's build is known to have got slower elsewhere."""
    likely = np.zeros(len(own.reds), dtype=np.bool_)
    for at in np.flatnonzero(own.reds).tolist():
        luck = _luck_before(own, at, alike)
        likely[at] = _strength(own, at, at, luck) >= _LIKELY
    return likely


def _may_be_slow_starts(own: Sessions, first: int, last: int, alike: Sequence[Sessions]) -> bool:
    """Whether a change may be a few slow starts, such as there were before it.

    A slow start of the baseline looks like a gain, so each session shows two starts.
    """
    some = own.effects[first : last + 1]
    change = _AS_BAD * float(some.mean())
    ends = [int(np.searchsorted(one.moments, own.moments[first])) for one in alike]
    counts = [_slow_starts(*each, change) for each in zip(alike, ends, strict=True)]
    slow, seen = (sum(each) for each in zip(*counts, strict=True))
    if not slow:
        return False
    own_slow, own_seen = _slow_starts(own, first, change)
    often = (own_slow + _PRIOR_SESSIONS * slow / seen) / (own_seen + _PRIOR_SESSIONS)
    by_chance = special.bdtrc(np.count_nonzero(some >= change) - 1, some.size, often)
    return bool(by_chance > _CHANCE)


def _slow_starts(sessions: Sessions, end: int, change: float) -> tuple[int, int]:
    """Slow starts before a session, by at least a change, and how many starts there were."""
    effects = sessions.effects[max(0, end - _LATEST) : end]
    if not effects.size or max(effects.max(), -effects.min()) < change:
        return 0, 2 * effects.size
    away = np.sort(np.abs(effects - compute_medians(effects)))
    bar = max(change, _BEYOND * float(away[int(_ORDINARY * (away.size - 1))]))
    return sum(_in_brief_spells(side >= bar) for side in (effects, -effects)), 2 * effects.size


def _in_brief_spells(slow: npt.NDArray[np.bool_]) -> int:
    """Count those with only a few in a row; those at the end may go on, and are left out."""
    if not slow.any():
        return 0
    edges = np.flatnonzero(np.diff(slow.view(np.int8), prepend=0))
    spells = edges[1::2] - edges[: edges.size // 2 * 2 : 2]
    return int(spells[spells <= _BRIEF].sum())


def _luck_before(own: Sessions, end: int, alike: Sequence[Sessions]) -> _Luck:
    """Learn from what came before a session, so that a change cannot excuse itself."""
    found, moment = _differences(own, end), own.moments[end]
    parts = [_differences(one, int(np.searchsorted(one.moments, moment))) for one in alike]
    others = _Differences(
        np.concatenate([part.effects for part in parts]),
        np.concatenate([part.variances for part in parts]),
        np.concatenate([part.baselines for part in parts]),
    )
    count = found.effects.size
    if count < LEARNED_FROM:
        known = max(_of_few(others), _of_few(found))
        return _Luck(0.0, known, known, 0.0, _BAR)
    share, of_baseline = _share(found), _variance(found.baselines) / 2
    left = _between(found.effects + share * found.baselines, found.variances)
    left = max(left, share * of_baseline)  # the contender's starts differ as the baseline's do
    whole = max(left, _between(found.effects, found.variances))
    common, weight = _between(others.effects, others.variances), count / (count + LEARNED_FROM)
    return _Luck(
        share,
        weight * left + (1 - weight) * common * (1 - share / 2),
        weight * whole + (1 - weight) * common,
        math.sqrt(of_baseline),
        _BAR * (1 + _YOUNG / count),
    )


def _of_few(found: _Differences) -> float:
    """Variance between starts by some differences, and no less than where nothing is known."""
    if found.effects.size < _FEWEST:
        return _UNKNOWN**2
    return max(_UNKNOWN**2, _between(found.effects, found.variances))


def _between(effects: Array, by_trials: Array) -> float:
    """Variance between starts, by differences of effects, beyond what trials explain."""
    return max(0.0, _variance(effects) - float(np.median(by_trials))) / 2


def _differences(sessions: Sessions, end: int) -> _Differences:
    start = max(0, end - _LATEST)
    squares = sessions.errors[start:end] ** 2
    return _Differences(
        np.diff(sessions.effects[start:end]),
        squares[1:] + squares[:-1],
        np.diff(sessions.baselines[start:end]),
    )


def _share(found: _Differences) -> float:
    """The slope that takes most off the effects; where the machine wanders it is small."""
    effects, baselines = _clipped(found.effects), _clipped(found.baselines)
    squares = float(baselines @ baselines)
    return min(1.0, max(0.0, -float(effects @ baselines) / squares)) if squares else 0.0


def _strength(own: Sessions, first: int, last: int, luck: _Luck) -> float:
    past = own.baselines[max(0, first - _LATEST) : first]
    some = slice(first, last + 1)
    usual = np.median(past) + _clipped(past - np.median(past)).mean() if past.size > 2 else np.nan
    away = own.baselines[some] - usual
    by_luck = np.abs(away) <= _OF_LUCK * luck.baseline  # false where no usual level is known
    change = own.effects[some] + np.where(by_luck, luck.share * away, 0.0)
    unsure = luck.share**2 * luck.left / max(past.size, 1)
    variance = own.errors[some] ** 2 + np.where(by_luck, luck.left + unsure, luck.whole)
    return float(change.sum() / math.sqrt(max(float(variance.sum()), 1e-18)))


def _clipped(values: Array) -> Array:
    bound = float(np.quantile(np.abs(values), _USUAL)) if values.size else 0.0
    return np.clip(values, -bound, bound)


def _variance(values: Array) -> float:
    """Mean square around 0, which a few changes of level do not sway."""
    return _CLIPPED * float(np.mean(_clipped(values) ** 2))
