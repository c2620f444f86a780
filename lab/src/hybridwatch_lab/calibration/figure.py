"""Makes figures of experiments: what is promised of them, and their values with intervals."""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from scipy import stats

from hybridwatch.analysis import paired_proportion
from hybridwatch.analysis.calibration import CONFIDENCE, FigurePromise, unknown_figure
from hybridwatch.analysis.calibration import Bound as Bound
from hybridwatch.analysis.calibration import Figure as Figure
from hybridwatch.analysis.calibration import FigureForm as FigureForm
from hybridwatch.analysis.calibration import share as share
from hybridwatch.analysis.paired_proportion import Pairs

_TAIL: Final = (1 - CONFIDENCE) / 2
_THOUSAND: Final = 1000


def percent(fraction: float) -> str:
    """Write a fraction in per cent, as the documents do."""
    return f"{100 * fraction:g} %"


def part(outcomes: Collection[bool]) -> str:
    """Write the share of outcomes that are so, for a cell of a table."""
    return percent(round(sum(outcomes) / len(outcomes), 3)) if outcomes else "-"


def at_most(limit: float) -> Bound:
    """Promise that a figure is no larger."""
    return Bound(limit, FigurePromise.MOST)


def at_level(limit: float) -> Bound:
    """Promise that a share is no larger than the level of the exact test behind it."""
    return Bound(limit, FigurePromise.LEVEL)


def at_least(limit: float) -> Bound:
    """Promise that a figure is no smaller."""
    return Bound(limit, FigurePromise.LEAST)


def gain(
    name: str, what: str, hits: Sequence[bool], lucks: Sequence[bool], bound: Bound | None = None
) -> Figure:
    """Compute how much oftener a change is found than luck: Tango's interval for paired shares."""
    pairs = Pairs(
        n=len(hits),
        lost=sum(luck and not hit for hit, luck in zip(hits, lucks, strict=True)),
        won=sum(hit and not luck for hit, luck in zip(hits, lucks, strict=True)),
    )
    span = paired_proportion.difference_interval(pairs)
    return Figure(name, what, pairs.difference, span.low, span.high, pairs.n, bound=bound)


def rate(
    name: str, what: str, events: int, points: int, simulations: int, bound: Bound | None = None
) -> Figure:
    """Compute how many events there were per 1000 points, with the exact Poisson interval."""
    scale = _THOUSAND / points
    low = float(stats.chi2.ppf(_TAIL, 2 * events)) / 2 if events else 0.0
    high = float(stats.chi2.ppf(1 - _TAIL, 2 * events + 2)) / 2
    return Figure(
        name, what, events * scale, low * scale, high * scale, simulations, FigureForm.NUMBER, bound
    )


def median(name: str, what: str, values: Sequence[float], bound: Bound | None = None) -> Figure:
    """Compute the median, with the interval that order statistics give without assumptions."""
    n = len(values)
    if not n:
        return unknown_figure(name, what, FigureForm.NUMBER, bound, (0.0, np.inf))
    ordered = np.sort(np.asarray(values, dtype=float))
    rank = int(stats.binom.ppf(_TAIL, n, 0.5))
    low, high = ordered[max(0, rank - 1)], ordered[min(n - 1, n - rank)]
    middle = float(np.median(ordered))
    return Figure(name, what, middle, float(low), float(high), n, FigureForm.NUMBER, bound)


def mean(name: str, what: str, values: Sequence[float], bound: Bound | None = None) -> Figure:
    """Compute the mean, with the normal interval; for many values."""
    array = np.asarray(values, dtype=float)
    half = float(stats.norm.ppf(1 - _TAIL) * stats.sem(array)) if len(array) > 1 else np.inf
    middle = float(np.mean(array))
    return Figure(
        name, what, middle, middle - half, middle + half, len(array), FigureForm.NUMBER, bound
    )
