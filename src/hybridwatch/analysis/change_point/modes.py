"""Did the level change, where the noise has more than one mode?

A series that falls into a second mode again and again hides a step in its own spread, whichever
mean is compared. Here whole distributions are compared instead, by the maximum mean discrepancy of
a Gaussian kernel (Gretton et al., JMLR 13, 2012; as a cost of segments Arlot, Celisse and
Harchaoui, JMLR 20, 2019). The kernel is as narrow as one mode, so a step shows within every mode.

Values become features: how near they are to each of a few values of the series itself. Sums of
features make the search linear in the points.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from hybridwatch.analysis.change_point import noise, scan, slope
from hybridwatch.analysis.change_point.noise import Array, bounded
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
_HANDICAP: Final = 5.0
"""By which a step must explain more than a line does, as in ``slope``."""
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

    It is a sum of squares of normal values with the features' own variances. A multiple of a
    chi-squared law has the same mean and variance (Welch 1938).

    Attributes:
        unit: The multiple.
        degrees: Degrees of freedom.
    """

    unit: float
    degrees: float

    def deviations(self, squares: Array) -> Array:
        """Say how many standard deviations a normal value would be away as rarely.

        By the cube root of Wilson and Hilferty (1931).
        """
        rest = 2 / (9 * self.degrees)
        roots: Array = np.cbrt(squares / (self.unit * self.degrees))
        return (roots - (1 - rest)) / math.sqrt(rest)


def best_step(values: Array, unit: float | Array) -> Split:
    """Find the clearest step in noise of several modes.

    ``unit`` is the standard deviation of a point, or of each; only their proportions are used.

    The strength of the cut is already in standard deviations over what is needed; of a long stretch
    the cuts of all pieces are given. There is no cut where one mode explains the noise, none is
    clear enough, or some points are much less certain than others: their distribution differs
    without any step.
    """
    typical = _estimate_unit(values)
    if values.size < slope.FEWEST or typical == 0 or not _is_even(unit):
        return NOWHERE
    if not _is_wide(values, typical):
        return NOWHERE
    best, cuts = 0.0, []
    for start in range(0, max(values.size - slope.FEWEST, 1), PIECE):
        end = values.size if values.size - start < PIECE + slope.FEWEST else start + PIECE
        found = _best_of_piece(values[start:end], _WIDTH * typical)
        if found.strength >= 1:
            best = max(best, found.strength)
            cuts += [start + cut for cut in found.cuts]
    return Split(best, tuple(cuts)) if cuts else NOWHERE


def _is_even(unit: float | Array) -> bool:
    return isinstance(unit, float) or float(unit.max()) <= _UNEVEN * float(unit.min())


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
        rest = np.concatenate([side - slope.level_of(side, unit) for side in sides])
        if _deviation(rest, unit) <= _WIDE:
            return False
    return _deviation(values - slope.line_of(values, unit), unit) > _WIDE


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
    """Slope per point, from points a fifth of the stretch apart (Theil 1950).

    Most of them have no step between them, and as many go up to another mode as down from it.
    """
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
    if squares - _explained_by_line(features) < _HANDICAP * law.unit * inflation:
        return 0.0
    return float(law.deviations(np.array([squares / inflation]))[0])


def _compute_features(values: Array, width: float) -> Array:
    """Say how near each point is to some of them, a column for each; the columns have mean 0."""
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
    total, squares = (
        float(np.trace(covariance)),
        float(np.einsum("ij,ij->", covariance, covariance)),
    )
    return _Law(squares / total, total**2 / squares) if squares > 0 else None


def _explained_by_line(features: Array) -> float:
    """Squared length of what straight lines through all features explain."""
    n = len(features)
    slopes = scan.list_times(n) @ features
    return float(slopes @ slopes) / (n * (n**2 - 1) / 12)
