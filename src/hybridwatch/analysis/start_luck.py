"""Which red verdicts of single sessions stand against what starts of an engine differ by.

An engine may be faster or slower by the luck of its start (memory layout, order of compilation):
all trials of a session share that, so that no number of them tells it from a change of the code
(Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013). How much starts differ
is learned from earlier sessions of the same question: from differences of neighbouring ones, which
a lasting change meets once, beyond what trials explain. The baseline is the same build every time:
where its own level is off, so is the effect, and that much is taken off (a control variate).

A red stands if it is ``_STANDS`` standard errors away from no change, alone or together with its
neighbours, up to three sessions in a row: what repeats, stands.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_STANDS: Final = 2.8
_YOUNG: Final = 5.0
"""Over the number of differences: by how much more the bar is raised while little is known."""
_TOGETHER: Final = 3
"""Sessions that may speak together: what lasts is told within three nights."""
_OWN: Final = 8
"""Differences from which a question's own say how much starts differ."""
_FEWEST: Final = 5
"""Differences of these that count."""
_UNKNOWN: Final = 0.03
"""Standard deviation between starts that is assumed of a young question, if the same metric of the
testbed's other scenarios, and its own few sessions, do not differ by more."""
_LATEST: Final = 60
"""Earlier sessions that count."""
_CLIP: Final = 2.5
_CLIPPED: Final = 1.03
"""What is lost of a normal variance by clipping there."""
_OF_LUCK: Final = 3.0
"""Standard deviations up to which the baseline's level is off by luck; further, the machine is."""
_TO_DEVIATION: Final = 0.6745


@dataclass(frozen=True, slots=True)
class Sessions:
    """What the sessions of one question say, oldest first; logarithms, upwards is worse.

    Attributes:
        moments: When each began.
        effects: Contender over baseline.
        errors: Standard errors of these, from the trials.
        baselines: Level of the baseline.
        reds: Whether the verdict is a regression.
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
        left: Variance between starts once that is taken off.
        whole: Variance between starts.
        baseline: Standard deviation of the baseline's level.
        bar: Standard errors at which a change stands.
    """

    share: float
    left: float
    whole: float
    baseline: float
    bar: float


def lasting_reds(own: Sessions, alike: Sequence[Sessions]) -> npt.NDArray[np.bool_]:
    """Say which reds stand against the luck of starts; what is not red does not.

    Args:
        own: Of the question.
        alike: Of every question about the same metric on the same testbed, this one included.
    """
    stands = np.zeros(len(own.reds), dtype=np.bool_)
    for first in range(len(own.reds)):
        near = own.reds[first : first + _TOGETHER]
        if not near.any():
            continue
        luck = _luck_before(own, first, alike)
        for last in range(first + int(near.argmax()), min(first + _TOGETHER, len(own.reds))):
            if _strength(own, first, last, luck) >= luck.bar:
                stands[first : last + 1] = True
    return stands & own.reds


def _luck_before(own: Sessions, first: int, alike: Sequence[Sessions]) -> _Luck:
    """Learn from what came before a session, so that a change cannot excuse itself."""
    found = _differences(own, first)
    if found.effects.size < _OWN:
        known = max(_known_before(own.moments[first], alike), _of_few(found))
        return _Luck(0.0, known, known, 0.0, _STANDS)
    share = _share(found)
    left = _between(found.effects + share * found.baselines, found.variances)
    whole = _between(found.effects, found.variances)
    deviation = math.sqrt(_variance(found.baselines) / 2)
    return _Luck(share, left, whole, deviation, _STANDS * (1 + _YOUNG / found.effects.size))


def _known_before(moment: np.int64, alike: Sequence[Sessions]) -> float:
    """Variance between starts by all that is alike."""
    parts = [_differences(one, int(np.searchsorted(one.moments, moment))) for one in alike]
    return _of_few(_Differences(*map(np.concatenate, zip(*map(astuple, parts), strict=True))))


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
    """The change of some sessions together, in standard errors of it."""
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
    """Bound values around 0, where most of them allow a bound."""
    bound = _CLIP * float(np.median(np.abs(values))) / _TO_DEVIATION
    return np.clip(values, -bound, bound) if bound else values


def _variance(values: Array) -> float:
    """Mean square around 0, which a few changes of level do not sway."""
    return _CLIPPED * float(np.mean(_clipped(values) ** 2))
