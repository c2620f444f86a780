"""Repeated looks at a growing run: when to look, and at which level to judge.

A run that is judged again and again until something is significant finds something too often: six
looks at 0.05 each cry wolf in 17 A/A runs of 100 by a single metric. So the looks are fixed before
the first trial, and all share one lower level, such that the chance of a false alarm at *any* look
stays what it was (Pocock, Biometrika 64, 1977; Jennison and Turnbull, "Group Sequential Methods",
2000, sections 2.4 and 19.2).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy import special

from hybridwatch.analysis.paired_proportion import root
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.records.run import InterimAnalyses

LEVEL: Final = 0.05
"""Chance of a false alarm over all looks together; the level of a run that is judged once."""

_LOOKS: Final = 6
_GROWTH: Final = 1.5
"""Each look has half as many trials again. More looks stop sooner and each needs stronger evidence;
six reach almost eight times the first."""

_TESTS: Final = 20
"""Tests of one report that the level is made for, more than a report of ours has. Of many tests the
smallest p-value counts, and the further out a boundary lies, the more repeated looks add to it."""

_DIGITS: Final = 5
"""Decimals of a level, rounded down: the last bits of a sum may differ from machine to machine, and
a record must be judged alike everywhere."""

_NODES: Final = 128


def schedule(first: int) -> tuple[int, ...]:
    """Lay out the looks of a run from the first: 7 trials a side give 7, 11, 16, 24, 36, 54."""
    return tuple(math.ceil(first * _GROWTH**look) for look in range(_LOOKS))


def level_of(looks: InterimAnalyses | None) -> float:
    """Give the level at which a run is judged; 0.05 when it was judged only once."""
    return LEVEL if looks is None else nominal_level(looks.planned, tests=_TESTS)


@lru_cache(maxsize=64)
def nominal_level(looks: tuple[int, ...], overall: float = LEVEL, tests: int = 1) -> float:
    """Give the level of each look that keeps the chance of a false alarm over all of them.

    A last look that comes early, since the time is spent, may be made at the same level: it has
    more in common with the looks before it, which only makes the whole more careful.

    ``looks`` are trials a side at each look, ascending. ``tests`` is how many p-values a look
    controls together, by Benjamini-Hochberg or Holm. The smallest of them is held against
    ``level / tests``, so it is there that the looks must add up to ``overall / tests``; the other
    steps are further in, where repeated looks add less.
    """
    outermost = _boundary(looks, overall / tests)
    level, scale = tests * 2 * float(special.ndtr(-outermost)), 10**_DIGITS
    return math.floor(min(level, overall) * scale + 1e-6) / scale


def crossing(looks: Sequence[int], boundary: float) -> float:
    """Give the chance that a standardised sum leaves +-boundary, in deviations, at any look.

    By recursion over the looks (Armitage, McPherson and Rowe 1969), each integral by
    Gauss-Legendre: the sum of ``n`` trials is a Brownian motion at time ``n``, kept as its density
    among the runs that have not stopped.
    """
    nodes, weights = _quadrature()
    times = np.asarray(looks, dtype=float)
    edges = boundary * np.sqrt(times)
    places = edges[0] * nodes
    mass = edges[0] * weights * _density(places, math.sqrt(times[0]))
    for look in range(1, len(times)):
        onward = edges[look] * nodes
        step = math.sqrt(times[look] - times[look - 1])
        density = _density(onward[:, None] - places[None, :], step) @ mass
        places, mass = onward, edges[look] * weights * density
    return 1.0 - float(mass.sum())


def open_metrics(report: Report) -> tuple[Comparison, ...]:
    """List the comparisons that more timed trials could still settle."""
    return tuple(c for c in timed(report) if c.verdict is Verdict.INCONCLUSIVE)


def timed(report: Report) -> tuple[Comparison, ...]:
    """List the comparisons that rest on timed trials: times, rates and counts."""
    return tuple(c for c in report.comparisons if c.metric.kind.has_noise)


def is_decided(report: Report) -> bool:
    """Whether there are timed metrics, and each of them has its verdict."""
    return bool(timed(report)) and not open_metrics(report)


def _boundary(looks: Sequence[int], overall: float) -> float:
    once = -float(special.ndtri(overall / 2))
    # Never further out than if the looks had nothing in common.
    apart = -float(special.ndtri(overall / 2 / len(looks)))
    if len(looks) == 1:
        return once
    return root(lambda c: crossing(looks, c) - overall, once, apart + 0.01)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Any, Any]:
    """Give the nodes and weights of Gauss-Legendre, which take longer to find than to use."""
    return np.polynomial.legendre.leggauss(_NODES)


def _density(places: Any, deviation: float) -> Any:
    return np.exp(-((places / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
