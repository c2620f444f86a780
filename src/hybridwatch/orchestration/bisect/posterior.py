"""Bisection by times: a noisy measurement makes some positions likelier than others.

Positions count from 0, the good end, to the bad end. All before the change are as the good end, the
change and all behind it as the bad one. Pure functions: their callers measure.

A measurement is a session that times a position and the good end in turn, block by block. Its
center is the median of the blocks' log ratios: 0 of an unchanged position, the effect of the ends
of a changed one. Around these it scatters as Student's t with four degrees of freedom: a disturbed
session lies far out more often than by a normal distribution, and must not decide alone.

How far sessions of the same builds lie apart depends on the machine and cannot be read off one
session's blocks. So it is learned, as the size of the effect is, and how far the effect varies from
start to start with the layout of memory: else what changed positions lie apart by would make
unchanged ones count less, which agree to less than a percent.

Where each block starts its own engines, as of duets, a block is a session: the noise of the few
blocks of the ends would be far too small, or far too large.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median, stdev
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from hybridwatch.errors import LostProbeError

Array = npt.NDArray[np.float64]

CONFIDENCE: Final = 0.99
"""How likely the named range has to hold the change: a wrong name costs its author a day."""


@dataclass(frozen=True, slots=True)
class Range:
    """Positions after ``good`` up to ``bad``, with the probability that one is the change."""

    good: int
    bad: int
    mass: float


@dataclass(frozen=True, slots=True)
class Belief:
    """A probability for each position from 1, the first after the good end, to the bad end.

    ``joint`` has them together with each size of the change and scatter of measurements, which are
    not known for sure either: a row for each position, a column for each of these. One of the
    ``skipped``, which cannot be measured, is not distinguished from the next that can.
    """

    joint: Array
    skipped: frozenset[int] = field(default_factory=frozenset)

    @property
    def masses(self) -> Array:
        """The probability of each position; the first is that of position 1."""
        return np.asarray(self.joint.sum(axis=1))

    @property
    def columns(self) -> Array:
        """The probability of each column."""
        return np.asarray(self.joint.sum(axis=0))

    @property
    def last(self) -> int:
        """The bad end."""
        return len(self.joint)

    @property
    def open(self) -> tuple[int, ...]:
        """Positions that can be measured, without the ends."""
        return tuple(at for at in range(1, self.last) if at not in self.skipped)

    def changed_at(self, positions: Sequence[int]) -> Array:
        """How likely each position is changed: the change is there or before it."""
        return np.cumsum(self.masses)[np.asarray(positions, dtype=np.int64) - 1]

    def after(
        self, at: int, if_unchanged: Array, if_changed: Array, reference: int = 0
    ) -> "Belief":
        """Learn a measurement of ``at`` against an earlier position, ``reference`` (Bayes' rule).

        Both arrays are logarithms of how likely it is for each column: if the change does not lie
        between the two that were measured, and if it does.
        """
        positions = np.arange(1, self.last + 1)[:, None]
        is_between = (reference < positions) & (positions <= at)
        likely = np.where(is_between, if_changed, if_unchanged)
        weights = self.joint * np.exp(likely - likely.max())
        return replace(self, joint=weights / weights.sum())

    def without(self, at: int) -> "Belief":
        """Learn that a position cannot be measured."""
        return replace(self, skipped=self.skipped | {at})

    def ranges(self) -> tuple[Range, ...]:
        """Give the ranges within which no measurement could distinguish positions."""
        ends = (0, *self.open, self.last)
        return tuple(self._range(low, high) for low, high in pairwise(ends))

    def best(self) -> Range:
        """Give the most likely range that cannot be divided further."""
        return max(self.ranges(), key=lambda one: one.mass)

    def credible(self) -> Range:
        """Give the shortest, then likeliest range that is as likely as ``CONFIDENCE`` wants."""
        ends = (0, *self.open, self.last)
        found = (self._range(low, high) for at, low in enumerate(ends) for high in ends[at + 1 :])
        wide = [one for one in found if one.mass >= CONFIDENCE - 1e-9]
        return min(wide, key=lambda one: (one.bad - one.good, -one.mass))

    def _range(self, low: int, high: int) -> Range:
        return Range(low, high, float(self.joint[low:high].sum()))


def build_belief(weights: Sequence[float], columns: Sequence[float] = (1.0,)) -> Belief:
    """Begin with weights, in any unit, of each position, the bad end last, and of each column."""
    found = np.outer(np.asarray(weights, dtype=np.float64), np.asarray(columns, dtype=np.float64))
    return Belief(found / found.sum())


FREEDOM: Final = 4
SESSION_SCATTER: Final = 0.005
"""How far two sessions of the same two builds lie apart on a quiet machine, however long they are,
as a log ratio: each start lays the engine out in memory in another way."""
_SCATTERS: Final = SESSION_SCATTER * np.array([0.5, 1.0, 2.0, 4.0, 8.0])
_SCATTER_WEIGHTS: Final = np.array([0.15, 0.35, 0.25, 0.15, 0.1])
"""Scatters that are looked at, and how likely each is before: with busy neighbours sessions of
unchanged commits lay up to 4 % apart."""
_VARIATIONS: Final = np.array([0.0, 0.2, 0.4])
_VARIATION_WEIGHTS: Final = np.array([0.5, 0.3, 0.2])
"""How far the effect varies from session to session, as a part of it, and how likely before: duets
of a commit that made steps 6 % longer gave 4.1 % with a standard deviation of 1.8 %."""
_OF_MEDIAN: Final = math.sqrt(math.pi / 2)
"""Standard error of a median against that of a mean, of normal values."""
_LEAST_NOISE: Final = 0.002
_95_PERCENT: Final = 1.96
_CLEAR: Final = 2.6
"""Standard errors that an effect has to be away from none: 1 in 100 is so by chance."""
_AWAY: Final = np.linspace(-4.0, 4.0, 17)
"""Sizes that are looked at, in standard errors from the one that the ends showed."""
_LEAST_SHARE: Final = 0.25
"""Part of the effect that it has at least. One of hardly any size would fit wherever it is put, and
the more so the more positions are found unchanged."""
_REACH: Final = 10.0
_GRID: Final = 101
"""Centers at which the information of a measurement is summed, and how far out, in scales."""
_MOST_MEASUREMENTS: Final = 200
"""A search that needs more has a wrong idea of the noise."""

BLOCKS: Final = (1, 5, 10, 20)
"""How many blocks a measurement may have."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What the ends showed: the log ratio of bad and good end, and its standard error.

    ``noise`` is the standard deviation of one block's log ratio around the center of its session;
    with ``restarts`` each block starts its own engines, and so is a session.
    """

    size: float
    error: float
    noise: float
    restarts: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether it is beyond noise."""
        return abs(self.size) > _CLEAR * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """Log ratios between which it lies with 95 %."""
        away = _95_PERCENT * self.error
        return self.size - away, self.size + away

    @property
    def sizes(self) -> Array:
        """Sizes that it may really have; one for each column of a belief."""
        return _columns(self.size + self.error * _AWAY, 0)

    @property
    def scatters(self) -> Array:
        """How far sessions may lie apart; one for each column of a belief."""
        return _columns(_SCATTERS, 1)

    @property
    def variations(self) -> Array:
        """How far the effect may vary, as a part of it; one for each column of a belief."""
        return _columns(_VARIATIONS, 2)

    def log_likelihoods(self, log_ratios: Sequence[float]) -> tuple[Array, Array]:
        """How likely a measurement is at an unchanged and a changed position: logarithms by column.

        A session whose blocks lie further apart than those of the ends counts less.
        """
        unchanged, changed = np.zeros_like(self.sizes), np.zeros_like(self.sizes)
        for blocks in _sessions(log_ratios) if self.restarts else [log_ratios]:
            center, noise = median(blocks), max(self.noise, _estimate_noise([blocks]))
            scales = np.hypot(_error(noise, len(blocks)), self.scatters)
            unchanged += _log_density(center / scales) - np.log(scales)
            scales = np.hypot(scales, self.variations * self.sizes)
            changed += _log_density((center - self.sizes) / scales) - np.log(scales)
        return unchanged, changed

    def is_changed(self, log_ratios: Sequence[float]) -> bool:
        """Whether a measurement lies nearer to this than to none."""
        return bool(median(log_ratios) / self.size > 1 / 2)

    def belief(self, weights: Sequence[float]) -> Belief:
        """Begin a search with the weights of ``build_belief``."""
        is_real = (self.size + self.error * _AWAY) / self.size >= _LEAST_SHARE
        sizes = np.where(is_real, np.exp(_log_density(_AWAY)), 0.0)
        columns = _columns(sizes, 0) * _columns(_SCATTER_WEIGHTS, 1)
        return build_belief(weights, (columns * _columns(_VARIATION_WEIGHTS, 2)).tolist())


@dataclass(frozen=True, slots=True)
class Costs:
    """Minutes of a measurement; ``start`` is 0 where engines start in each block."""

    start: float
    block: float

    def of(self, blocks: int) -> float:
        """Minutes of a measurement."""
        return self.start + blocks * self.block


@dataclass(frozen=True, slots=True)
class NextProbe:
    """What to measure next: a position, and with how many blocks."""

    at: int
    blocks: int


def compute_effect(sessions: Sequence[Sequence[float]], *, restarts: bool = False) -> Effect:
    """Read the effect off the sessions of the two ends; with ``restarts`` each block is a session.

    The noise is the blocks' median distance from the median of their session, scaled to a standard
    deviation, so that a few disturbed blocks do not count.
    """
    if restarts:
        sessions = _sessions([one for blocks in sessions for one in blocks])
    centers = [median(blocks) for blocks in sessions]
    size = median(one for blocks in sessions for one in blocks)
    noise = max(_estimate_noise(sessions), _LEAST_NOISE)
    scatter = max(SESSION_SCATTER, stdev(centers) if len(centers) > 1 else 0.0)
    error = math.hypot(_error(noise, sum(map(len, sessions))), scatter / math.sqrt(len(sessions)))
    return Effect(size, error, noise, restarts)


def next_choice(belief: Belief, effect: Effect, costs: Costs) -> NextProbe | None:
    """Choose the measurement with the most expected information per minute, if any is left."""
    if not belief.open:
        return None
    shares = belief.changed_at(belief.open)
    scatter, variation = belief.columns @ np.transpose([effect.scatters, effect.variations])
    counts = BLOCKS[:1] if effect.restarts else BLOCKS
    best = NextProbe(belief.open[0], counts[0])
    most = -math.inf
    for blocks in counts:
        unchanged = math.hypot(_error(effect.noise, blocks), scatter)
        changed = math.hypot(unchanged, effect.error, variation * effect.size)
        gains = _information(shares, abs(effect.size), unchanged, changed) / costs.of(blocks)
        at = int(np.argmax(gains))
        if gains[at] > most:
            most, best = float(gains[at]), NextProbe(belief.open[at], blocks)
    return best


def find_timed(
    belief: Belief,
    effect: Effect,
    costs: Costs,
    measure: Callable[[NextProbe], Sequence[float] | None],
    may_go_on: Callable[[], bool] = lambda: True,
) -> Belief:
    """Measure until one range that cannot be divided is likely enough, or there is no time left.

    ``measure`` gives the blocks' log ratios, or ``None`` of a position that cannot be measured.
    """
    for _ in range(_MOST_MEASUREMENTS):
        choice = next_choice(belief, effect, costs)
        if belief.best().mass >= CONFIDENCE or choice is None or not may_go_on():
            break
        try:
            found = measure(choice)
        except LostProbeError:
            break
        if found:
            belief = belief.after(choice.at, *effect.log_likelihoods(found))
        else:
            belief = belief.without(choice.at)
    return belief


def _information(shares: Array, size: float, unchanged: float, changed: float) -> Array:
    """Bits that a measurement is expected to give; ``shares`` are likelihoods of being changed."""
    centers = np.linspace(-_REACH * unchanged, size + _REACH * changed, _GRID)
    step = centers[1] - centers[0]
    if_unchanged = np.exp(_log_density(centers / unchanged)) / unchanged
    if_changed = np.exp(_log_density((centers - size) / changed)) / changed
    mixed = shares[:, None] * if_changed + (1 - shares[:, None]) * if_unchanged
    told = special.xlogy(if_changed, if_changed / mixed).sum(axis=1) * shares
    told += special.xlogy(if_unchanged, if_unchanged / mixed).sum(axis=1) * (1 - shares)
    return np.asarray(told * step / math.log(2))


def _columns(values: Array, axis: int) -> Array:
    """Give each column of a belief its size (0), scatter (1) or variation (2)."""
    shape = len(_AWAY), len(_SCATTERS), len(_VARIATIONS)
    return np.broadcast_to(values.reshape(np.roll([-1, 1, 1], axis)), shape).ravel()


def _sessions(blocks: Sequence[float]) -> list[Sequence[float]]:
    return [(one,) for one in blocks]


def _estimate_noise(sessions: Sequence[Sequence[float]]) -> float:
    """Standard deviation of the blocks around the center of their session."""
    away = (abs(one - median(blocks)) for blocks in sessions for one in blocks)
    return 1.4826 * median(away)


def _error(noise: float, blocks: int) -> float:
    return _OF_MEDIAN * noise / math.sqrt(blocks)


def _log_density(values: Array) -> Array:
    constant = (
        special.gammaln((FREEDOM + 1) / 2)
        - special.gammaln(FREEDOM / 2)
        - 0.5 * math.log(FREEDOM * math.pi)
    )
    return np.asarray(constant - (FREEDOM + 1) / 2 * np.log1p(values**2 / FREEDOM))
