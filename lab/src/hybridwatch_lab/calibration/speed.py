"""How long the history detector takes, in units that mean the same on any machine."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from time import process_time
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hybridwatch_lab.calibration import figure, simulated
from hybridwatch_lab.calibration.figure import Figure, at_most
from hybridwatch_lab.calibration.laboratory import Laboratory, LabSection
from hybridwatch_lab.calibration.rivals import Detector, ours
from hybridwatch_lab.calibration.simulated import Array

_SHORT: Final = 100
_LONG: Final = 10_000
_LENGTHS: Final = (_SHORT, 1_000, _LONG)
_POINTS: Final = 2_000
"""Timed at once, so that a short series is not timed with the caches of a long one."""
_ATTEMPTS: Final = 3
_MOST: Final = 80.0
"""Plain passes that a short series may cost: a promise that a slow machine does not break. One
without a step takes about 4. One with a step took 12 before each step had a range of places and
was held against a drift, and about 50 since: 2 ms."""
_WINDOW: Final = 20
_SPREAD: Final = 0.03
_CHANGE: Final = 0.05


def reference(values: Array) -> object:
    """A plain pass over a series: the median of every twenty points."""
    return np.median(sliding_window_view(values, _WINDOW), axis=1)


def of_detector(lab: Laboratory, detector: Detector = ours) -> LabSection:
    """Time per 1000 points, by length, and as a multiple of a plain pass timed in turn with it."""
    lab.on_progress("histories: time per point")
    figures: list[Figure] = []
    for name, what, change in (("flat", "no change", 0.0), ("step", "one step", _CHANGE)):
        rng = lab.rng(f"speed {name}")
        taken: dict[int, list[float]] = {n: [] for n in _LENGTHS}
        ratios: dict[int, list[float]] = {n: [] for n in _LENGTHS}
        for _, n in product(range(lab.times(25, 3)), _LENGTHS):
            level = simulated.step(n, 2 * n // 3, change)
            values = level * np.exp(_SPREAD * rng.standard_normal(n))
            taken[n].append(_per_thousand(detector, values))
            ratios[n].append(taken[n][-1] / _per_thousand(reference, values))
        figures += _figures(name, what, taken, ratios)
    text = (
        "One call on a finished series of lognormal values, CV 3 %, without a change and with "
        "one of 5 % at two thirds, each series a new one, beside a plain pass over the same "
        f"series (the median of every {_WINDOW} points), timed in turn. Milliseconds are of the "
        "machine that wrote this file and of its other work; the ratio depends on them less."
    )
    return LabSection("Time", text, tuple(figures))


def _figures(
    name: str, what: str, taken: Mapping[int, list[float]], ratios: Mapping[int, list[float]]
) -> Iterator[Figure]:
    for n in _LENGTHS:
        title = f"ms per 1000 points, series of {n}, {what}"
        yield figure.median(f"speed.ms_{name}_{n}", title, taken[n])
        bound = at_most(_MOST) if n == _SHORT else None
        title = f"times the plain pass, series of {n}, {what}"
        yield figure.median(f"speed.ratio_{name}_{n}", title, ratios[n], bound)
    growth = [long / short for long, short in zip(taken[_LONG], taken[_SHORT], strict=True)]
    title = f"time per point, series of {_LONG} against {_SHORT}, {what}"
    yield figure.median(f"speed.growth_{name}", title, growth, at_most(1.0))


def _per_thousand(work: Callable[[Array], object], values: Array) -> float:
    """Milliseconds of processor time per 1000 points: the best of a few, as neighbours only add."""
    calls = max(1, _POINTS // len(values))
    best = math.inf
    for _ in range(_ATTEMPTS):
        began = process_time()
        for _ in range(calls):
            work(values)
        best = min(best, process_time() - began)
    return best * 1e6 / len(values) / calls
