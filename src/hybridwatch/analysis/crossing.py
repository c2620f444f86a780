"""Two curves of one sweep: where one build is better, and where the curves cross.

``curve_area`` says whether the whole curve moved. It can stay where it is while one end rises and
the other falls, so throughput is compared at each interactivity that both curves reach, on the line
between the points of a trial next to it and never beyond its last. Trials are paired in blocks like
any other number (``blocks``); one that does not reach a place is left out there with its block. A
curve of k loads has k points and k - 1 lines between them, so a place counts as better at the (2k -
1)-th part of the level, by an exact test. Like every rate it is held back on a noisy machine.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from hybridwatch.analysis.machine_state import is_noisy_machine
from hybridwatch.analysis.pair import build_blocks, build_pair
from hybridwatch.analysis.rank import rank_p
from hybridwatch.analysis.signed_rank import signed_rank_p
from hybridwatch.analysis.subject import OneSide, Subject
from hybridwatch.analysis.verdict import Better, LoadPoint, SideCurve, Spread, Stretch, Tradeoff
from hybridwatch.metrics import CURVE_AREA, DUET_CURVE_AREA, find_metric
from hybridwatch.records.readings import Place, compute_goodput, find_place, list_places
from hybridwatch.records.run import Phase, Trial

BAND: Final = 0.8
"""Share of the trials that lie within a band, as many of the others above it as below."""


def swept_trials(side: OneSide) -> dict[int, tuple[Place, ...]]:
    """Give the places of each trial of a side that went through loads, by the trial's index."""
    swept = ((one.index, one.curve) for one in _trials(side) if one.curve is not None)
    found = ((index, list_places(curve)) for index, curve in swept)
    return {index: places for index, places in found if places is not None}


def build_curve(side: OneSide) -> SideCurve | None:
    """Lay out the curve of a side; ``None`` where no trial of it went through loads."""
    indices = swept_trials(side)
    curves = [one.curve for one in _trials(side) if one.curve is not None and one.index in indices]
    if not curves:
        return None
    by_load: dict[float, list[tuple[Place, float | None, float | None]]] = defaultdict(list)
    for curve in curves:
        for point in curve.points:
            place = find_place(curve, point)
            if place is not None:
                seen = place, compute_goodput(curve, point), point.joules_per_token
                by_load[point.load].append(seen)
    first = curves[0]
    points = tuple(_load_point(load, by_load[load]) for load in sorted(by_load))
    return SideCurve(
        side.build.label, first.knob, first.gpus, first.slo, len(curves), points, first.clock
    )


def swept_in(side: OneSide) -> Phase:
    """Say in which phase a side went through loads: a duet measures nothing else."""
    return Phase.DUET if side.trials(Phase.DUET) else Phase.PERFORMANCE


def _trials(side: OneSide) -> Sequence[Trial]:
    return side.trials(swept_in(side))


def _load_point(load: float, seen: list[tuple[Place, float | None, float | None]]) -> LoadPoint:
    places, goodputs, joules = zip(*seen, strict=True)
    return LoadPoint(
        load,
        _spread(one.interactivity for one in places),
        _spread(one.throughput for one in places),
        _spread_of_known(goodputs),
        _spread_of_known(joules),
    )


def _spread_of_known(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return _spread(known) if known else None


def _spread(values: Iterable[float]) -> Spread:
    low, middle, high = np.quantile(list(values), ((1 - BAND) / 2, 0.5, (1 + BAND) / 2))
    return Spread(float(middle), float(low), float(high))


_PLACES: Final = 65
"""Interactivities at which the curves are compared."""


def tradeoff_between(baseline: OneSide, contender: OneSide, level: float) -> Tradeoff | None:
    """Compare two curves; a p-value counts below ``level``, which is divided among the places."""
    left, right = build_curve(baseline), build_curve(contender)
    if left is None or right is None:
        return None
    old, new = swept_trials(baseline), swept_trials(contender)
    common = _common(left, right)
    phase = swept_in(baseline)
    metric = find_metric(DUET_CURVE_AREA if phase is Phase.DUET else CURVE_AREA)
    held_back = is_noisy_machine(
        build_pair(Subject(metric, metric.kind.statistic), baseline, contender)
    )
    if common is None or held_back:
        return Tradeoff(left, right, common)
    bar = level / (2 * max(len(left.points), len(right.points)) - 1)
    found = []
    for place in np.linspace(*common, _PLACES):
        at = float(place)
        sides = _throughput_at(old, at), _throughput_at(new, at)
        found.append((at, _better(baseline, contender, *sides, bar)))
    return Tradeoff(left, right, common, _stretches(found))


def _common(*sides: SideCurve) -> tuple[float, float] | None:
    reached = [[point.interactivity.middle for point in side.points] for side in sides]
    low, high = max(map(min, reached)), min(map(max, reached))
    return (low, high) if low < high else None


def _throughput_at(trials: Mapping[int, Sequence[Place]], at: float) -> dict[int, float]:
    found = {}
    for index, places in trials.items():
        reached, given = np.asarray(sorted(places)).T
        if reached[0] <= at <= reached[-1]:
            found[index] = float(np.interp(at, reached, given))
    return found


def _better(
    baseline: OneSide,
    contender: OneSide,
    old: Mapping[int, float],
    new: Mapping[int, float],
    bar: float,
) -> Better | None:
    blocks = build_blocks(baseline, contender, swept_in(baseline), old, new)
    if not old or not new or (blocks is not None and not blocks.n):
        return None
    if blocks is None:
        before, after = [*old.values()], [*new.values()]
        p_value, change = rank_p(before, after), float(np.median(after) - np.median(before))
    else:
        p_value, change = signed_rank_p(blocks.log_ratios), float(np.median(blocks.log_ratios))
    if p_value >= bar:
        return None
    return "contender" if change > 0 else "baseline"


def _stretches(found: Sequence[tuple[float, Better | None]]) -> tuple[Stretch, ...]:
    stretches = []
    for better, group in groupby(found, key=lambda one: one[1]):
        places = [at for at, _ in group]
        if better is not None:
            stretches.append(Stretch(better, places[0], places[-1]))
    return tuple(stretches)
