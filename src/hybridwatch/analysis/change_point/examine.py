"""``examine`` a history: checks its arguments, chooses the scale, and describes the result."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from hybridwatch.analysis.change_point import ChangePoint, Drift, History, HistoryState, scan
from hybridwatch.analysis.change_point.noise import (
    CLIP,
    Array,
    Noise,
    bounded,
    compute_medians,
    compute_noise,
    compute_scores,
    compute_spread,
)
from hybridwatch.analysis.change_point.place import (
    LONGEST,
    ChangePlace,
    Ramp,
    place_of,
    ramp_instead,
)
from hybridwatch.analysis.change_point.segmentation import (
    Levels,
    Segment,
    build_segment,
    compute_levels,
    merge_small,
)
from hybridwatch.analysis.verdict import Interval
from hybridwatch.errors import HistoryError
from hybridwatch.metrics import Kind

ENOUGH_POINTS: Final = 10
"""Below, noise and change cannot be distinguished."""
MOST_POINTS: Final = 1_000_000
"""Noise with a few changes of level takes 2 s for so many, a level that wanders 20 s."""
LARGEST: Final = 1e150
"""On either side of 0: squares of values must be numbers, too."""

_CONFIDENCE: Final = 0.95
_YOUNGEST: Final = 5
"""Points on a new level before it can be confirmed: two more than it takes to suspect it."""
_CLEAR: Final = 1.15
"""Strength that confirms."""
_RELEVANT: Final[Mapping[Kind | None, float]] = {Kind.COUNT: 0.005}
_RELEVANT_ELSE: Final = 0.01
"""Changes of level below 1 % (1 point for proportions) are kept to ourselves."""
_DRIFTS: Final = 4.0
_ALIKE: Final = 0.3
_LARGEST_LOG: Final = 700.0
"""Of a ratio that is still a number."""
_UNIT_FACTORS: Final = (60.0, 1000.0, 1024.0, 3600.0, 1e6, 1e9)


@dataclass(frozen=True, slots=True)
class _Series:
    """A checked series on the scale on which levels are compared.

    ``values`` are logarithms where a ratio means something. ``spreads`` are standard errors and
    ``relevant`` the smallest difference of levels that matters, on the same scale.
    """

    values: Array
    spreads: Array | None
    is_log: bool
    relevant: float
    noise: Noise

    def effect(self, difference: float) -> float:
        """Turn a difference of levels into what a reader sees."""
        return math.expm1(min(difference, _LARGEST_LOG)) if self.is_log else difference


def examine(
    values: npt.ArrayLike, *, kind: Kind | None = None, spreads: npt.ArrayLike | None = None
) -> History:
    """Say all there is to say of a series: change points, drift and doubts.

    Args:
        values: One number per run, oldest first. Fewer than 10 give nothing.
        kind: Exact metrics change whenever the value does; proportions are compared by difference;
            others by ratio where all values are positive.
        spreads: Standard error of each value from the repeats within its run.

    Raises:
        HistoryError: The input makes no series; the message says where and what was expected.
    """
    numbers = _values(values)
    errors = None if spreads is None else _errors(spreads, numbers.size)
    if kind is Kind.EXACT:
        return History(tuple(_steps(numbers)))
    if numbers.size < ENOUGH_POINTS:
        found = f"Not enough data: {numbers.size} points, at least {ENOUGH_POINTS} needed."
        return History(doubts=(found,))
    with np.errstate(over="ignore"):  # distances are clipped, however far they are
        return _searched(_scaled(numbers, errors, kind))


def _searched(series: _Series) -> History:
    levels = compute_levels(series.values, series.spreads, series.noise)
    levels = merge_small(series.values, levels, series.relevant)
    places = _places(series, levels)
    points: list[ChangePoint] = []
    drifts: list[Drift] = []
    drift = None
    for cuts in _split_runs(series, levels):
        found = [_point(series, levels, cut, places[cut]) for cut in cuts]
        drift = _drift_instead(series, levels, cuts, found)
        if drift is None:
            points += found
        else:
            drifts.append(drift)
    if drift is None:
        drifts += _last_drift(series, levels)
    return History(tuple(points), tuple(drifts), tuple(_doubts(series, levels)))


def _places(series: _Series, levels: Levels) -> list[ChangePlace]:
    """Place every change between its neighbours, which were placed again already or will be."""
    edges = list(levels.edges(series.values.size))
    found: list[ChangePlace] = []
    for _ in range(2):
        before, found = tuple(edges), []
        for at in range(1, len(edges) - 1):
            start, end = edges[at - 1], edges[at + 1]
            stretch = build_segment(series.values, series.spreads, start, end, series.noise)
            near = place_of(stretch.values, stretch.unit, edges[at] - start)
            found.append(ChangePlace(start + near.index, start + near.first, start + near.last))
            edges[at] = found[-1].index
        if tuple(edges) == before:
            break
    return found


def _split_runs(series: _Series, levels: Levels) -> Iterator[range]:
    edges = levels.edges(series.values.size)
    medians = [compute_medians(series.values[a:b]) for a, b in pairwise(edges)]
    ups = [high > low for low, high in pairwise(medians)]
    start = 0
    for at in range(1, len(ups) + 1):
        if at == len(ups) or ups[at] != ups[start]:
            yield range(start, at)
            start = at


def _drift_instead(
    series: _Series, levels: Levels, cuts: range, found: Sequence[ChangePoint]
) -> Drift | None:
    edges = levels.edges(series.values.size)
    start, end = edges[cuts.start], edges[cuts.stop + 1]
    stretch = build_segment(series.values, series.spreads, start, end, series.noise)
    within = tuple(point.index - start for point in found)
    ramp = ramp_instead(stretch.values, stretch.noise.scale, within)
    return None if ramp is None else _make_drift(series, ramp, start)


def _make_drift(series: _Series, ramp: Ramp, start: int) -> Drift:
    first, last, end = start + ramp.first, start + ramp.last, start + ramp.end
    return Drift(start + ramp.start, first, last, end, series.effect(ramp.total))


def _numbers(name: str, given: npt.ArrayLike) -> Array:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise HistoryError(f"{name}: expected numbers, found {error}") from None
    if numbers.ndim != 1:
        raise HistoryError(f"{name}: expected one row of numbers, found {numbers.ndim} dimensions")
    if numbers.size > MOST_POINTS:
        raise HistoryError(
            f"{name}: expected at most {MOST_POINTS} points, found {numbers.size}: "
            "look at a shorter time, or at one point a day"
        )
    finite = np.isfinite(numbers)
    if not finite.all():
        place = int(finite.argmin())
        raise HistoryError(f"{name}[{place}]: expected a finite number, found {numbers[place]}")
    return numbers


def _values(given: npt.ArrayLike) -> Array:
    numbers = _numbers("values", given)
    large = np.flatnonzero(np.abs(numbers) > LARGEST)
    if large.size:
        place = int(large[0])
        wanted = f"a number from {-LARGEST:g} to {LARGEST:g}"
        raise HistoryError(f"values[{place}]: expected {wanted}, found {numbers[place]:g}")
    return numbers


def _errors(spreads: npt.ArrayLike, n: int) -> Array:
    errors = _numbers("spreads", spreads)
    if errors.size != n:
        raise HistoryError(f"spreads: expected {n} numbers, one per value, found {errors.size}")
    if n and errors.min() < 0:
        place = int(errors.argmin())
        raise HistoryError(f"spreads[{place}]: expected 0 or more, found {errors[place]:g}")
    return errors


def _scaled(numbers: Array, errors: Array | None, kind: Kind | None) -> _Series:
    if kind in {Kind.TIME, Kind.RATE} and numbers.min() <= 0:
        place = int(numbers.argmin())
        raise HistoryError(f"values[{place}]: expected more than 0, found {numbers[place]:g}")
    is_log = kind is not Kind.PROPORTION and bool(numbers.min() > 0)
    if is_log:
        errors = None if errors is None else errors / numbers
        numbers = np.log(numbers)
    # Differences of values that are no ratios and no shares have no size that matters by itself.
    relevant = _RELEVANT.get(kind, _RELEVANT_ELSE) if is_log or kind is Kind.PROPORTION else 0.0
    return _Series(numbers, errors, is_log, relevant, compute_noise(numbers))


def _steps(numbers: Array) -> Iterator[ChangePoint]:
    for place in np.flatnonzero(numbers[1:] != numbers[:-1]) + 1:
        at, effect = int(place), float(numbers[place] - numbers[place - 1])
        interval = Interval(effect, effect, _CONFIDENCE)
        yield ChangePoint(at, effect, interval, HistoryState.CONFIRMED, at, at)


def _point(series: _Series, levels: Levels, nth: int, place: ChangePlace) -> ChangePoint:
    edges = levels.edges(series.values.size)
    start, cut, end = edges[nth : nth + 3]
    stretch = build_segment(series.values, series.spreads, start, end, series.noise)
    difference, reach = _difference(stretch, cut - start)
    old = end - cut >= _YOUNGEST or end < series.values.size
    clear = old and levels.strengths[nth] >= _CLEAR
    low, high = series.effect(difference - reach), series.effect(difference + reach)
    return ChangePoint(
        place.index,
        series.effect(difference),
        Interval(low, high, _CONFIDENCE),
        HistoryState.CONFIRMED if clear else HistoryState.SUSPECTED,
        place.first,
        place.last,
    )


def _difference(stretch: Segment, cut: int) -> tuple[float, float]:
    scale, n = stretch.noise.scale, stretch.values.size
    left, right = stretch.values[:cut], stretch.values[cut:]
    low, high = scan.level_of(left, scale), scan.level_of(right, scale)
    if scale == 0:
        return high - low, 0.0
    rest = bounded(np.concatenate((left - low, right - high)) / scale, CLIP)
    deviation = scale * compute_spread(rest, (cut,), stretch.noise.correlation).deviation
    quantile = float(special.stdtrit(n - 2, (1 + _CONFIDENCE) / 2))
    return high - low, quantile * deviation * math.sqrt(1 / cut + 1 / (n - cut))


def _last_drift(series: _Series, levels: Levels) -> Iterator[Drift]:
    start = max(levels.edges(series.values.size)[-2], series.values.size - LONGEST)
    n = series.values.size - start
    if n < scan.FEWEST_OF_LINE:
        return
    stretch = build_segment(series.values, series.spreads, start, start + n, series.noise)
    if not stretch.has_noise():
        return
    scores = compute_scores(stretch.values, stretch.unit)
    if abs(scan.compute_tilt(scores)) < _DRIFTS / 2:
        return
    line = scan.line_of(stretch.values, stretch.unit)
    total = float(line[-1] - line[0])
    rest = compute_scores(stretch.values - line, stretch.unit)
    spread = compute_spread(rest, (), stretch.noise.correlation)
    error = stretch.noise.scale * spread.deviation * math.sqrt(12 / n)
    if abs(total) < max(_DRIFTS * error, series.relevant):
        return
    # A step that is not clear enough to be reported is no drift either.
    ramp = ramp_instead(stretch.values, stretch.noise.scale, scan.best_step(scores).cuts)
    if ramp is not None:
        yield _make_drift(series, ramp, start)


def _doubts(series: _Series, levels: Levels) -> Iterator[str]:
    alike = series.noise.correlation
    if alike >= _ALIKE and not levels.cuts:
        yield (
            f"Neighbouring points resemble each other (correlation {alike:.1f}), so a change takes "
            "more points to show: look for what lasts from run to run."
        )
    if series.is_log and series.values.size > 1:
        yield from _about_units(series.values)


def _about_units(logs: Array) -> Iterator[str]:
    steps = np.abs(logs[1:] - logs[:-1])
    place = int(steps.argmax())
    for factor in _UNIT_FACTORS:
        if abs(steps[place] - math.log(factor)) < 0.1:
            yield (
                f"Point {place + 1} differs from the one before by a factor of about {factor:g}: "
                "are two units mixed?"
            )
            return
