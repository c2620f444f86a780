"""Since when is a run bad that is known to be: a step at which run, or a drift?

``place`` weighs places by what is seen on both sides of them. An alert wants to know on its first
morning, with one run on the new level, so here the noise is taken from what came before and from
the error of each run. Every place of a step and a grid of drifts, begun long enough ago, are fitted
by least squares and weighed by their likelihoods, with clipped distances; a drift is believed less
beforehand.
"""

import math
from typing import Final

import numpy as np

from hybridwatch.analysis.change_point.noise import Array, compute_noise
from hybridwatch.analysis.change_point.place import CERTAIN, CONFIDENCE, ChangePlace, shortest
from hybridwatch.analysis.change_point.ramp import SHORTEST, find_shape
from hybridwatch.analysis.change_point.segmentation import build_segment

FEWEST: Final = 5
"""Runs before the bad one that tell a level and its noise."""
_CLIP: Final = 5.0
"""Standard deviations of a run that is off for reasons of its own."""
_DRIFTS: Final = 0.2
"""How likely a drift is beforehand."""
_MOVED: Final = 6
"""Runs for which a drift has to last until the bad one: what is faster is a step in the search for
its cause."""
_LEAST: Final = 1e-9


def find_onset(values: Array, errors: Array, bad: int) -> ChangePlace | None:
    """Find the runs one of which is the first bad one with 95 %.

    ``values`` says how bad each run is, oldest first, with the standard error of each; ``FEWEST``
    runs or more come before the bad one. The first bad run is not after ``bad``.

    Gives ``None`` where a drift is as likely as 5 %: then no few runs hold the cause so surely.
    """
    whole = build_segment(values, errors, 0, values.size, compute_noise(values))
    unit = np.maximum(whole.unit, _LEAST) * np.ones(values.size)
    unit[bad] = min(unit[bad], np.median(unit))  # how unsure it is was asked when it was judged
    way, at = math.copysign(1.0, values[bad]), np.arange(values.size)
    last = values.size - 1
    pairs = [
        (start, end)
        for start in range(bad - _MOVED + 1)
        for end in {*range(start + SHORTEST, last), last}
    ]
    steps = (at >= np.arange(1, bad + 1)[:, None]).astype(np.float64)
    ramps = find_shape(values.size, *np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
    misfits = _misfits(way * values, unit, np.concatenate((steps, ramps)))
    chances = np.exp((misfits.min() - misfits) / 2 / CERTAIN)
    by_step, by_drift = chances[:bad], chances[bad:]
    drifts = _DRIFTS * float(by_drift.mean()) if pairs else 0.0
    if drifts > (1 - CONFIDENCE) * (drifts + (1 - _DRIFTS) * float(by_step.mean())):
        return None
    return shortest(by_step / by_step.sum(), 1)


def _misfits(values: Array, unit: Array, shapes: Array) -> Array:
    """Fit a level plus what each shape adds to it, nothing below 0, and say how badly it fits."""
    weights = 1 / unit**2 / np.sum(1 / unit**2)
    level = values - weights @ values
    shapes = shapes - (shapes @ weights)[:, None]
    sizes = np.maximum((shapes * weights) @ level / (shapes**2 @ weights), 0.0)
    away = (level - sizes[:, None] * shapes) / unit
    return np.asarray(np.minimum(away**2, _CLIP**2).sum(axis=1))
