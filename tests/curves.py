"""Runs of a sweep from few words: how fast the steps of either side are under each load."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from hybridwatch.metric.catalogue import CURVE_AREA
from hybridwatch.record.curve import area_of, places_of
from hybridwatch.record.run import Curve, Point, Run, Sample, Trial
from tests.builders import a_comparison

LOADS = (1, 2, 4, 8)
SLO = {"ttft": 0.1, "tpot": 0.03}
REQUESTS = 16


def even(_load: float) -> float:
    """An engine like the other one."""
    return 1.0


def slower(share: float) -> Callable[[float], float]:
    """Every step takes a share longer."""
    return lambda _load: 1 + share


def tilted(load: float) -> float:
    """Steps of one request take a tenth less, of eight a tenth longer."""
    return 0.9 + 0.2 * (load - 1) / 7


def a_swept_run(
    *sides: Callable[[float], float],
    trials: int = 10,
    noise: float = 0.02,
    seed: int = 3,
    slo: Mapping[str, float] = SLO,
    joules: float | None = None,
) -> Run:
    """A run of a sweep whose trials all scatter alike, and whose points scatter by themselves."""
    rng = np.random.default_rng(seed)
    curves = [
        [_curve(side, lambda: float(np.exp(rng.normal(0, noise))), slo, joules) for side in sides]
        for _ in range(trials)
    ]
    areas = [[_area(per_side[at]) for per_side in curves] for at in range(len(sides))]
    run = a_comparison(*({CURVE_AREA: values} for values in areas))
    return replace(run, trials=tuple(_with(trial, curves) for trial in run.trials))


def _curve(
    pace: Callable[[float], float],
    hiccup: Callable[[], float],
    slo: Mapping[str, float],
    joules: float | None,
) -> Curve:
    points = []
    for load in LOADS:
        step = 0.008 * (1 + 0.25 * load) * pace(load) * hiccup()
        rate = load / step * 0.9
        samples = (
            Sample("output_throughput", (rate,)),
            Sample("request_throughput", (rate / 32,)),
            Sample("ttft", (4 * step,) * REQUESTS),
            Sample("tpot", (step,) * REQUESTS),
        )
        each = None if joules is None else joules / load
        points.append(Point(load, samples, each))
    return Curve("max_concurrency", tuple(points), slo=slo)


def _area(curve: Curve) -> float:
    places = places_of(curve)
    assert places is not None
    return area_of(places)


def _with(trial: Trial, curves: list[list[Curve]]) -> Trial:
    return replace(trial, curve=curves[trial.index // len(curves[0])][trial.side])
