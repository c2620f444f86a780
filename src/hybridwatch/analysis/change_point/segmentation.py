"""Cuts a series into levels: at its best split, then on both sides, then all cuts once more.

Binary segmentation (Vostrikova 1981) that can also cut out an excursion, and that takes a slope
for a slope. What was cut early is placed again between its final neighbours, and what does not
stand there is dropped.

A series that falls into a second mode again and again hides a step in its own spread, whichever
mean is compared. So whole distributions are compared too, by the maximum mean discrepancy of a
Gaussian kernel (Gretton et al., JMLR 13, 2012; as a cost of segments Arlot, Celisse and Harchaoui,
JMLR 20, 2019). The kernel is as narrow as one mode, so a step shows within every mode. Values
become features: how near they are to each of a few values of the series itself. Sums of features
make the search linear in the points.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from scipy import special

from hybridwatch.analysis.change_point import noise, scan
from hybridwatch.analysis.change_point.noise import (
    Array,
    Noise,
    NoiseSpread,
    bounded,
    compute_least_spread,
    compute_medians,
    compute_noise,
    compute_scores,
    compute_spread,
)
from hybridwatch.analysis.change_point.scan import FEWEST, NOWHERE, Split, needed

_FEATURES: Final = 24
_WIDTH: Final = 0.5
"""Of the kernel, in units of ``_estimate_unit``, which modes make up to twice too large."""
_NEAR: Final = 0.25
"""Quantile of neighbours' differences: most of the smallest are of neighbours in one mode."""
_NEAR_IN_UNITS: Final = math.sqrt(2) * float(special.ndtri((1 + _NEAR) / 2))
_WIDE: Final = 1.2
"""Standard deviation of scores around a line, from which one mode does not explain them."""
_COSTS: Final = 1.15
"""A change of a distribution can take many forms, so it needs to be clearer than one of a mean."""
_STEP_MARGIN: Final = 5.0
"""By which a step must explain more than a line does, as in ``scan``."""
_LEFT: Final = 0.5
"""Of what is needed: what must be left of a step when a slope is taken out of the series."""
_UNEVEN: Final = 2.0
"""Standard deviations of points, the largest over the smallest, that count as equal."""
_FAR: Final = 30.0
"""Widths from which on nothing is near; squares of more may be too large for a number."""
PIECE: Final = 1024
"""Points that are searched at once; a longer stretch is searched piece by piece."""


@dataclass(frozen=True, slots=True)
class _Law:
    """Law of the squared distance of two mean features, if nothing changes.

    It is a sum of squares of normal values with the features' own variances. A multiple (``unit``)
    of a chi-squared law has the same mean and variance (Welch 1938).
    """

    unit: float
    degrees: float

    def deviations(self, squares: Array) -> Array:
        """Compute how far off a normal value would be as rarely (Wilson and Hilferty 1931)."""
        rest = 2 / (9 * self.degrees)
        roots: Array = np.cbrt(squares / (self.unit * self.degrees))
        return (roots - (1 - rest)) / math.sqrt(rest)


def best_step_of_modes(values: Array, unit: float | Array) -> Split:
    """Find the clearest step in noise of several modes; of a long stretch the cuts of all pieces.

    ``unit`` is the standard deviation of a point, or of each; only their proportions are used. The
    strength is already in standard deviations over what is needed. There is no cut where one mode
    explains the noise, none is clear enough, or some points are much less certain than others:
    their distribution differs without any step.
    """
    typical = _estimate_unit(values)
    is_even = isinstance(unit, float) or float(unit.max()) <= _UNEVEN * float(unit.min())
    if values.size < scan.FEWEST_OF_LINE or typical == 0 or not is_even:
        return NOWHERE
    if not _is_wide(values, typical):
        return NOWHERE
    best, cuts = 0.0, []
    for start in range(0, max(values.size - scan.FEWEST_OF_LINE, 1), PIECE):
        end = values.size if values.size - start < PIECE + scan.FEWEST_OF_LINE else start + PIECE
        found = _best_of_piece(values[start:end], _WIDTH * typical)
        if found.strength >= 1:
            best = max(best, found.strength)
            cuts += [start + cut for cut in found.cuts]
    return Split(best, tuple(cuts)) if cuts else NOWHERE


def _estimate_unit(values: Array) -> float:
    """Standard deviation of a point within its mode, roughly."""
    near = np.abs(values[1:] - values[:-1])
    place = int(near.size * _NEAR)
    near.partition(place)
    return float(near[place]) / _NEAR_IN_UNITS


def _is_wide(values: Array, unit: float) -> bool:
    """Whether values stray around a line and around a step further than one mode explains."""
    cuts = scan.best_step(noise.compute_scores(values, unit)).cuts
    if cuts:
        sides = (values[: cuts[0]], values[cuts[0] :])
        rest = np.concatenate([side - scan.level_of(side, unit) for side in sides])
        if _deviation(rest, unit) <= _WIDE:
            return False
    return _deviation(values - scan.line_of(values, unit), unit) > _WIDE


def _deviation(rest: Array, unit: float) -> float:
    scores = noise.compute_scores(rest, unit)
    return math.sqrt(noise.compute_products(scores, scores) / scores.size)


def _best_of_piece(values: Array, width: float) -> Split:
    features = _compute_features(values, width)
    n = values.size
    law = _estimate_law(features, n - 1)
    if law is None:
        return NOWHERE
    place = np.arange(FEWEST, n - FEWEST + 1)
    sums = np.cumsum(features, axis=0)[place - 1]
    squares = n / (place * (n - place)) * np.einsum("ij,ij->i", sums, sums)
    wanted = _COSTS * needed(np.minimum(place, n - place), n)
    best = int((law.deviations(squares) / wanted).argmax())
    cut = int(place[best])
    strength = _strength(features, cut)
    if strength >= wanted[best]:
        # What a slope makes of a distribution is no line of its features, unless it is slight.
        level = _compute_features(values - _estimate_slope(values) * scan.list_times(n), width)
        strength = strength if _strength(level, cut) >= _LEFT * wanted[best] else 0.0
    return Split(strength / float(wanted[best]), (cut,))


def _estimate_slope(values: Array) -> float:
    """Slope per point, from points a fifth of the stretch apart (Theil 1950): few steps between."""
    lag = values.size // 5
    return noise.compute_medians(values[lag:] - values[:-lag]) / lag


def _strength(features: Array, cut: int) -> float:
    """Count a step in standard deviations of what remains without it; 0 for a possible slope."""
    n = len(features)
    rest = features.copy()
    for side in (slice(0, cut), slice(cut, None)):
        rest[side] -= rest[side].mean(axis=0)
    law = _estimate_law(rest, n - 2)
    if law is None:
        return 0.0
    inflation = noise.compute_inflation(rest, (cut,)) ** 2
    total = features[:cut].sum(axis=0)
    squares = float(total @ total) * n / (cut * (n - cut))
    if squares - _explained_by_line(features) < _STEP_MARGIN * law.unit * inflation:
        return 0.0
    return float(law.deviations(np.array([squares / inflation]))[0])


def _compute_features(values: Array, width: float) -> Array:
    ranked = np.sort(values)
    count = min(_FEATURES, values.size)
    marks = ranked[((np.arange(count) + 0.5) * values.size / count).astype(np.int64)]
    away = (values[:, None] - marks) / width
    features = np.exp(-0.5 * bounded(away, _FAR) ** 2)
    centered: Array = features - features.mean(axis=0)
    return centered


def _estimate_law(features: Array, degrees: int) -> _Law | None:
    """Match a law to centred features; ``None`` where nothing varies."""
    covariance = features.T @ features / degrees
    total = float(np.trace(covariance))
    squares = float(np.einsum("ij,ij->", covariance, covariance))
    return _Law(squares / total, total**2 / squares) if squares > 0 else None


def _explained_by_line(features: Array) -> float:
    n = len(features)
    slopes = scan.list_times(n) @ features
    return float(slopes @ slopes) / (n * (n**2 - 1) / 12)


_KNOWN_NOISE: Final = 20
"""Points from which a stretch's own noise is estimated; a shorter one takes that of a longer."""
_STANDS: Final = 0.95
"""Of the strength: what was found shall not vanish because its place was found again."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A series cut at the first point of each new level; a strength of 1 is just enough."""

    cuts: tuple[int, ...] = ()
    strengths: tuple[float, ...] = ()

    def edges(self, n: int) -> tuple[int, ...]:
        """Where levels begin and end, the ends of the series included."""
        return (0, *self.cuts, n)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a series with its noise; ``unit`` is the standard deviation of a point, or each."""

    values: Array
    noise: Noise
    unit: float | Array

    def has_noise(self) -> bool:
        """Whether there is anything to count distances in."""
        return not isinstance(self.unit, float) or self.unit > 0

    def spread(self, scores: Array, split: Split) -> NoiseSpread:
        """How far sums of these scores stray, if it splits so."""
        return compute_spread(scores, split.cuts, self.noise.correlation)


def build_segment(
    values: Array, spreads: Array | None, start: int, end: int, whole: Noise
) -> Segment:
    """Take a part of a series up to before ``end``; ``spreads`` are standard errors of points."""
    part = values[start:end]
    alone = _KNOWN_NOISE <= part.size < values.size
    noise = compute_noise(part).at_least(whole) if alone else whole
    if spreads is None:
        return Segment(part, noise, noise.scale)
    own = spreads[start:end] ** 2
    # The scale holds the repeats' usual error already; what is left is common to all points.
    common = max(noise.scale**2 - float(own.mean()), 0.0)
    unit = np.sqrt(common + own)
    return Segment(part, noise, unit if unit.min() > 0 else max(noise.scale, float(unit.max())))


def compute_levels(values: Array, spreads: Array | None, whole: Noise) -> Levels:
    """Cut a series of at least ten points into levels; ``spreads`` are their standard errors."""
    found = _search(values, spreads, whole)
    # A single cut stands between the ends of the series already.
    return found if len(found.cuts) < 2 else _settle(values, spreads, whole, list(found.cuts))


def merge_small(values: Array, levels: Levels, smallest: float) -> Levels:
    """Forget cuts between levels that differ by less than matters, the smallest first."""
    edges = list(levels.edges(values.size))
    strengths = list(levels.strengths)
    medians = [compute_medians(values[a:b]) for a, b in pairwise(edges)]
    while strengths:
        steps = np.abs(np.diff(medians))
        place = int(steps.argmin())
        if steps[place] >= smallest:
            break
        del edges[place + 1], strengths[place]
        medians[place : place + 2] = [compute_medians(values[edges[place] : edges[place + 1]])]
    return Levels(tuple(edges[1:-1]), tuple(strengths))


def _search(values: Array, spreads: Array | None, whole: Noise) -> Levels:
    strengths: dict[int, float] = {}
    waiting: list[tuple[int, int, Noise]] = [(0, values.size, whole)]
    while waiting:
        start, end, around = waiting.pop()
        if end - start < scan.SHORTEST:
            continue
        stretch = build_segment(values, spreads, start, end, around)
        split = _find_best(stretch)
        if split.cuts:
            found = [start + cut for cut in split.cuts]
            strengths |= dict.fromkeys(found, split.strength)
            waiting += [(a, b, stretch.noise) for a, b in pairwise([start, *found, end])]
    return _levels(strengths)


def _levels(strengths: Mapping[int, float]) -> Levels:
    ordered = sorted(strengths)
    return Levels(tuple(ordered), tuple(strengths[cut] for cut in ordered))


def _find_best(stretch: Segment) -> Split:
    if stretch.values.size <= PIECE:
        # A mean that several modes sway is placed worse.
        split = best_step_of_modes(stretch.values, stretch.unit)
        return split if split.cuts else _best_of_means(stretch)
    # Means are searched many times faster.
    split = _best_of_means(stretch)
    return split if split.cuts else best_step_of_modes(stretch.values, stretch.unit)


def _best_of_means(stretch: Segment) -> Split:
    scores = compute_scores(stretch.values, stretch.unit)
    single = _best_single(stretch, scores)
    excursion = scan.best_excursion(scores)
    rival = max(single.strength, 1.0)
    if excursion.strength > rival * compute_least_spread(scores):
        excursion = excursion.over(stretch.spread(scores, excursion).deviation)
        if excursion.strength > rival:
            return excursion
    return single if single.strength >= 1 else scan.NOWHERE


def _best_single(stretch: Segment, scores: Array) -> Split:
    step = scan.best_step(scores)
    least = compute_least_spread(scores)
    if step.strength < least:
        return step.over(least)
    spread = stretch.spread(scores, step)
    step = step.over(spread.deviation)
    if step.strength < 1 or scores.size < scan.FEWEST_OF_LINE or not stretch.has_noise():
        return step
    line = scan.is_line(stretch.values, step.cuts[0], stretch.unit, spread.inflation)
    if line is None:
        return step
    beside = compute_scores(stretch.values - line, stretch.unit)
    jump = scan.best_jump(beside)
    return jump.over(stretch.spread(beside, jump).deviation)


def _settle(values: Array, spreads: Array | None, whole: Noise, cuts: list[int]) -> Levels:
    """Place every cut again between its neighbours, and drop the weakest until all stand."""
    edges = [0, *cuts, values.size]

    def placed(cut: int) -> tuple[int, float]:
        start, end = edges[cut - 1], edges[cut + 1]
        found = _between(build_segment(values, spreads, start, end, whole), start)
        if found[1] >= _STANDS or end - start <= PIECE:
            return found
        # Modes are searched in pieces: this one is around the cut.
        start = max(start, edges[cut] - PIECE // 2)
        end = min(end, edges[cut] + PIECE // 2)
        return _between(build_segment(values, spreads, start, end, whole), start)

    again = [placed(cut) for cut in range(1, len(edges) - 1)]
    strengths = np.array([strength for _, strength in again])
    while again:
        weakest = int(strengths.argmin())
        if strengths[weakest] >= _STANDS:
            return _levels(dict(again))
        # Only the cuts next to the dropped one have got another neighbour.
        del edges[weakest + 1], again[weakest]
        strengths = np.delete(strengths, weakest)
        for cut in {max(weakest - 1, 0), weakest} & set(range(len(again))):
            again[cut] = placed(cut + 1)
            strengths[cut] = again[cut][1]
    return Levels()


def _between(stretch: Segment, start: int) -> tuple[int, float]:
    if stretch.values.size <= PIECE:
        split = best_step_of_modes(stretch.values, stretch.unit)
        if split.cuts:
            return start + split.cuts[0], split.strength
    split = _best_single(stretch, compute_scores(stretch.values, stretch.unit))
    return start + (split.cuts[0] if split.cuts else 0), split.strength
