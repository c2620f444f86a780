"""From a series to its levels: cut where it splits best, look again at both sides, then settle.

Binary segmentation (Vostrikova 1981) that can also cut out an excursion, and that takes a slope
for a slope. What was cut early is placed again between its final neighbours, and what does not
stand there is dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point import modes, scan, slope
from hybridwatch.analysis.change_point.noise import (
    Array,
    Noise,
    NoiseSpread,
    compute_least_spread,
    compute_medians,
    compute_noise,
    compute_scores,
    compute_spread,
)
from hybridwatch.analysis.change_point.scan import Split

_KNOWN_NOISE: Final = 20
"""Points that tell their own noise; shorter stretches borrow it from what they are a part of."""
_STANDS: Final = 0.95
"""Of the strength: what was found shall not vanish because its place was found again."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A series cut into levels.

    Attributes:
        cuts: First point of each new level, ascending.
        strengths: How clearly each stands between its neighbours; 1 is just enough.
    """

    cuts: tuple[int, ...] = ()
    strengths: tuple[float, ...] = ()

    def edges(self, n: int) -> tuple[int, ...]:
        """Where levels begin and end, the ends of the series included."""
        return (0, *self.cuts, n)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a series with the noise that is believed of it.

    Attributes:
        unit: Standard deviation of a point; of each, where the repeats behind them are known.
    """

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
    """Take a part of a series.

    ``spreads`` has the standard error of each point, from the repeats behind it. ``end`` is behind
    the last point. ``whole`` is the noise of the whole series.
    """
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
    """Cut a series of at least ten points into levels.

    ``spreads`` has the standard error of each point, from the repeats behind it.
    """
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
    """The clearest split of a stretch, without any cut if none is clear enough."""
    if stretch.values.size <= modes.PIECE:
        # A mean that several modes sway is placed worse.
        split = modes.best_step(stretch.values, stretch.unit)
        return split if split.cuts else _best_of_means(stretch)
    # Means are searched many times faster.
    split = _best_of_means(stretch)
    return split if split.cuts else modes.best_step(stretch.values, stretch.unit)


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
    if step.strength < 1 or scores.size < slope.FEWEST or not stretch.has_noise():
        return step
    line = slope.is_line(stretch.values, step.cuts[0], stretch.unit, spread.inflation)
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
        if found[1] >= _STANDS or end - start <= modes.PIECE:
            return found
        # Modes are searched in pieces: this one is around the cut.
        start = max(start, edges[cut] - modes.PIECE // 2)
        end = min(end, edges[cut] + modes.PIECE // 2)
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
    if stretch.values.size <= modes.PIECE:
        split = modes.best_step(stretch.values, stretch.unit)
        if split.cuts:
            return start + split.cuts[0], split.strength
    split = _best_single(stretch, compute_scores(stretch.values, stretch.unit))
    return start + (split.cuts[0] if split.cuts else 0), split.strength
