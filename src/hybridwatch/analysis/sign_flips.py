"""One joint test of all times, rates and counts that were measured within blocks.

Without a change either trial of a block is as likely to be the larger. So the sign of a block may
be flipped, in all metrics at once, since these share its two trials. The largest statistic over all
metrics is held against the largest over all metrics after each flip, stepping down from the
clearest metric (Westfall and Young, "Resampling-Based Multiple Testing", 1993, sections 2.6 and
2.8). The chance of even one false alarm is then at most the level, whatever the noise, and metrics
that move together cost each other little.

Seven blocks tell hardly anything about the noise of one metric. So metrics of one load share
it, as far as they are alike (Smyth, Statistical Applications in Genetics and Molecular Biology 3,
2004, article 3). A scale decides only about power: flips leave it as it is, and so the
test stays exact.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy import special

FLIPS: Final = 4096
"""Flips beyond which chance takes as many, the identity among them (Phipson and Smyth 2010)."""
SEED: Final = 20260403
"""Any constant: the same record must always give the same p-value."""
REACH: Final = 4.0
"""Standard deviations beyond which a block counts no more: one hiccup must not decide."""
_NORMAL: Final = 1.4826
"""Median size times this is the standard deviation of normal noise around 0."""

OWN_NOISE_PENALTY: Final = 1.0
"""Standard deviations that a row must be clearer by its own noise. One costs no power to be seen
where noise is alike; without it 0.61 would be 0.51 (seven blocks, +5 % in one of nine metrics)."""

_FULL: Final = 1e-6
"""Below this all blocks agree, and rounding would decide which of two such rows is the clearer."""
_DIGITS: Final = 12
"""Ratios that differ in the last digits of a float are tied."""
_TIED: Final = 1e-9
_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One metric within blocks.

    Attributes:
        ratios: Logarithm of contender / baseline of each block, positive where worse.
        shares_variance: Whether the row shares its scale with others that do.
    """

    ratios: tuple[float, ...]
    shares_variance: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """One-sided p-values of a row, for one direction.

    Attributes:
        alone: As if the row were the only one.
        adjusted: For the largest of all rows, stepping down.
    """

    alone: float
    adjusted: float


def flip_p(rows: Sequence[BlockRow]) -> tuple[tuple[Tail, Tail], ...]:
    """Test whether rows became worse, and whether they became better.

    Rows are of one family, with at least one block each. Each has p-values of being worse and of
    being better.
    """
    signs = _signs(max(len(row.ratios) for row in rows))
    # No flip of one metric's blocks goes against any of another's, so that all share the flips.
    clear = [
        _clearness(signs[:, : len(row.ratios)], *one)
        for row, one in zip(rows, _noise(rows), strict=True)
    ]
    worse, better = _step_down(clear), _step_down([-each for each in clear])
    return tuple(zip(worse, better, strict=True))


def _noise(rows: Sequence[BlockRow]) -> Iterator[tuple[Any, float, float]]:
    """Give each row's blocks, their mean square, and the same as shared with others of its kind."""
    ratios = [_clipped(row.ratios) for row in rows]
    own = [float(np.mean(np.sort(some**2))) for some in ratios]
    shared = list(own)
    sharers: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        if row.shares_variance and own[at] > 0:
            sharers.setdefault(len(row.ratios), []).append(at)
    for n, members in sharers.items():
        together = moderated([own[at] for at in members], n)
        for at, power in zip(members, together, strict=True):
            shared[at] = power
    return zip(ratios, own, shared, strict=True)


def _clearness(flips: Any, ratios: Any, own: float, shared: float) -> Any:
    """Say after each flip how far from 0 a row is, in standard deviations.

    By the shared noise. Or, where that is clearer by ``OWN_NOISE_PENALTY``, by its own: Student's
    t, brought to a normal scale (Wallace 1959). Without it a change of a row with hardly any noise
    would drown in another row that is all noise.
    """
    if not own:
        return np.zeros(len(flips))
    n = len(ratios)
    sums = flips @ ratios / np.sqrt(n)
    left = np.maximum(1 - sums**2 / (n * own), _FULL)
    alone = np.sqrt(-(n - 1) * np.log(left)) * (8 * n - 7) / (8 * n - 5)
    return np.sign(sums) * np.maximum(np.abs(sums) / np.sqrt(shared), alone - OWN_NOISE_PENALTY)


def _clipped(ratios: Sequence[float]) -> Any:
    """Draw in what lies far beyond the typical size; sizes do not change when signs flip."""
    rounded = np.round(np.asarray(ratios, dtype=float), _DIGITS)
    limit = REACH * _NORMAL * float(np.median(np.abs(rounded)))
    return np.clip(rounded, -limit, limit) if limit else rounded


def moderated(powers: Sequence[float], n: int) -> Sequence[float]:
    """Draw mean squares together, the more the less they differ beyond chance.

    Smyth's prior (section 6.2): the variance of their logarithms beyond that of chance, the
    trigamma function at ``n / 2``, says how many blocks the common scale is worth.

    ``powers`` are mean squares, all positive; ``n`` is how many blocks are behind each.
    """
    if len(powers) < 2:
        return powers
    logs = np.log(powers) - special.digamma(n / 2) + np.log(n / 2)
    middle = float(np.mean(np.sort(logs)))
    beyond = float(np.var(np.sort(logs), ddof=1)) - float(special.polygamma(1, n / 2))
    if beyond <= _TIED:
        return [float(np.exp(middle))] * len(powers)
    worth = 2 * _inverse_trigamma(beyond)
    common = np.exp(middle + special.digamma(worth / 2) - np.log(worth / 2))
    return [float((worth * common + n * power) / (worth + n)) for power in powers]


def _inverse_trigamma(value: float) -> float:
    """Newton's steps on one over the function, from below (Smyth's appendix)."""
    found = 0.5 + 1 / value
    for _ in range(_STEPS):
        seen = float(special.polygamma(1, found))
        step = seen * (1 - seen / value) / float(special.polygamma(2, found))
        found += step
        if abs(step) < _TIED * found:
            break
    return found


def _step_down(clear: Sequence[Any]) -> list[Tail]:
    # From the least clear row on, so that each is held against itself and all that are less clear.
    order = sorted(range(len(clear)), key=lambda at: float(clear[at][0]))
    largest = np.full(len(clear[0]), -np.inf)
    found: list[Tail] = [Tail(1.0, 1.0)] * len(clear)
    for at in order:
        largest = np.maximum(largest, clear[at])
        bar = clear[at][0] - _TIED
        found[at] = Tail(float(np.mean(clear[at] >= bar)), float(np.mean(largest >= bar)))
    least = 0.0
    for at in reversed(order):
        least = max(least, found[at].adjusted)
        found[at] = Tail(found[at].alone, least)
    return found


@lru_cache(maxsize=16)
def _signs(blocks: int) -> Any:
    """Every flip of so many blocks, or as many as chance takes; what was seen comes first."""
    if 2**blocks <= FLIPS:
        return np.asarray(list(itertools.product((1.0, -1.0), repeat=blocks)))
    drawn = np.random.default_rng(SEED).integers(0, 2, size=(FLIPS, blocks))
    drawn[0] = 0
    return 1.0 - 2.0 * drawn
