"""Runs of a sweep from few words: how fast the steps of either side are under each load."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hybridwatch.analysis.verdict import Report, Tradeoff
from hybridwatch.metrics import CURVE_AREA, DUET_CURVE_AREA
from hybridwatch.records.readings import compute_area, list_places
from hybridwatch.records.run import Clock, Curve, Run, Trial
from hybridwatch_lab.calibration.sweeps import LOADS as LOADS
from hybridwatch_lab.calibration.sweeps import Pace, made_up_curve
from hybridwatch_lab.calibration.sweeps import even as even
from hybridwatch_lab.calibration.sweeps import slower as slower
from hybridwatch_lab.calibration.sweeps import tilted as tilted
from tests.builders import a_comparison

SLO = {"ttft": 0.1, "tpot": 0.03}


def a_swept_run(
    *sides: Pace,
    trials: int = 10,
    noise: float = 0.02,
    seed: int = 3,
    slo: Mapping[str, float] = SLO,
    joules: float | None = None,
    duet: bool = False,
) -> Run:
    """A run of a sweep whose trials all scatter alike, and whose points scatter by themselves."""
    rng = np.random.default_rng(seed)
    curves = [
        [
            made_up_curve(side, lambda: float(np.exp(rng.normal(0, noise))), slo, joules)
            for side in sides
        ]
        for _ in range(trials)
    ]
    areas = [[_area(per_side[at]) for per_side in curves] for at in range(len(sides))]
    metric = DUET_CURVE_AREA if duet else CURVE_AREA
    run = a_comparison(*({metric: values} for values in areas))
    clock: Clock = "processor" if duet else "wall"
    return replace(run, trials=tuple(_with(trial, curves, clock) for trial in run.trials))


def tradeoff_in(report: Report) -> Tradeoff:
    """Both curves of the report of a sweep."""
    assert report.tradeoff is not None
    return report.tradeoff


def _area(curve: Curve) -> float:
    places = list_places(curve)
    assert places is not None
    return compute_area(places)


def _with(trial: Trial, curves: list[list[Curve]], clock: Clock) -> Trial:
    curve = curves[trial.index // len(curves[0])][trial.side]
    return replace(trial, curve=replace(curve, clock=clock))
