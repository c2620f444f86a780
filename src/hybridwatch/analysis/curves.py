"""The curve of one side of a sweep: each load as a point, with a band over the trials."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.tradeoff import LoadPoint, SideCurve, Spread
from hybridwatch.records.readings import Place, compute_goodput, find_place, list_places
from hybridwatch.records.run import Curve, Phase, Trial

BAND: Final = 0.8
"""Share of the trials that lie within a band, as many of the others above it as below."""


def swept_trials(side: OneSide) -> dict[int, tuple[Place, ...]]:
    """Give the places of each trial of a side that went through loads, by the trial's index."""
    found = {}
    for trial in _trials(side):
        places = list_places(trial.curve) if trial.curve is not None else None
        if places is not None:
            found[trial.index] = places
    return found


def build_curve(side: OneSide) -> SideCurve | None:
    """Lay out the curve of a side; ``None`` where no trial of it went through loads."""
    indices = swept_trials(side)
    trials = [trial for trial in _trials(side) if trial.index in indices]
    curves = list(_curves(trials))
    if not curves:
        return None
    by_load: dict[float, list[_SeenLoad]] = defaultdict(list)
    for curve in curves:
        for point in curve.points:
            place = find_place(curve, point)
            if place is not None:
                seen = _SeenLoad(place, compute_goodput(curve, point), point.joules_per_token)
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


@dataclass(frozen=True, slots=True)
class _SeenLoad:
    place: Place
    goodput: float | None
    joules: float | None


def _curves(trials: Iterable[Trial]) -> Iterable[Curve]:
    return (trial.curve for trial in trials if trial.curve is not None)


def _load_point(load: float, seen: list[_SeenLoad]) -> LoadPoint:
    return LoadPoint(
        load,
        _spread(one.place.interactivity for one in seen),
        _spread(one.place.throughput for one in seen),
        _spread_of_known(one.goodput for one in seen),
        _spread_of_known(one.joules for one in seen),
    )


def _spread_of_known(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return _spread(known) if known else None


def _spread(values: Iterable[float]) -> Spread:
    low, middle, high = np.quantile(list(values), ((1 - BAND) / 2, 0.5, (1 + BAND) / 2))
    return Spread(float(middle), float(low), float(high))
