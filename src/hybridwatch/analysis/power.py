"""How many trials: when to look at a growing run and at which level, and what would settle it.

A run that is judged again and again until something is significant finds something too often: six
looks at 0.05 each cry wolf in 17 A/A runs of 100 by a single metric. So the looks are fixed before
the first trial, and all share one lower level, such that the chance of a false alarm at *any* look
stays what it was (Pocock, Biometrika 64, 1977; Jennison and Turnbull, "Group Sequential Methods",
2000, sections 2.4 and 19.2).

What the trials at hand could have found, and how many would settle the question, are planning
numbers, not verdicts: good to about a tenth. They use the unadjusted level, so a report with many
tests needs somewhat more.
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


POWER: Final = 0.8
_RANK_EFFICIENCY: Final = 3 / math.pi
"""Asymptotic relative efficiency of the rank test against t under normal noise (Lehmann,
"Nonparametrics", 1975, chapter 2); it is never below 0.864 for any noise."""
_MEDIAN_EFFICIENCY: Final = 2 / math.pi
"""The same of the median against the mean."""
_NO_SPREAD: Final = 1e-12
ENOUGH: Final = 10
"""Trials a side below which we recommend repeating whatever the formula says: from ten blocks on
sides are tested within blocks, where drift of the machine hides nothing."""


def detectable_change(
    baseline: Sequence[float], contender: Sequence[float], bound: float
) -> float | None:
    """Estimate the smallest relative change that these trials would call one 8 times in 10.

    Beyond noise: ``(t_.975 + t_.8) * s * sqrt((1/n + 1/m) / ARE)`` with ``s`` the pooled standard
    deviation of the logarithms within the sides, ``t`` quantiles at ``n + m - 2`` degrees. Beyond
    the bound: ``ln(1 + bound) + t_.8 * s * sqrt((1/n + 1/m) * pi / 2)``. The larger counts.

    ``bound`` and the result are fractions (``0.05`` is 5 %). ``None`` below four trials a side, and
    where the spread is zero or a number is not positive.
    """
    spread = _log_spread(baseline, contender)
    if spread is None or min(len(baseline), len(contender)) < 4:
        return None
    n, m = len(baseline), len(contender)
    tested = spread * math.sqrt((1 / n + 1 / m) / _RANK_EFFICIENCY)
    estimated = spread * math.sqrt((1 / n + 1 / m) / _MEDIAN_EFFICIENCY)
    return _detectable(tested, estimated, n + m - 2, bound, tail=LEVEL / 2)


def detectable_in_blocks(ratios: Sequence[float], bound: float) -> float | None:
    """Estimate the same of paired trials: ``s`` of the log ratios, ``n`` blocks, ``n - 1`` degrees.

    ``(t_.95 + t_.8) * s / sqrt(n * ARE)``, as the test is one-sided, or
    ``ln(1 + bound) + t_.8 * s / sqrt(n * ARE)``. ``None`` below two blocks and where all are equal.
    """
    spread = _spread(ratios)
    if spread is None:
        return None
    error = spread / math.sqrt(len(ratios) * _RANK_EFFICIENCY)
    return _detectable(error, error, len(ratios) - 1, bound, tail=LEVEL)


def _detectable(
    tested: float, estimated: float, freedom: int, bound: float, *, tail: float
) -> float:
    power = special.stdtrit(freedom, POWER)
    found = (special.stdtrit(freedom, 1 - tail) + power) * tested
    return float(np.expm1(max(found, math.log1p(bound) + power * estimated)))


def trials_to_settle(
    baseline: Sequence[float], contender: Sequence[float], margin: float
) -> int | None:
    """Estimate the trials a side that would show an unchanged build to be equivalent.

    ``2 * ((z_.95 + z_.9) * s / log(1 + margin))^2 / ARE``: the two one-sided tests succeed 8
    times in 10. As many also find a change of the margin's size more than 8 times in 10. Where
    they have been made already the change lies at the margin's edge: then twice as many.

    At least 10; ``None`` where the spread is unknown.
    """
    spread = _log_spread(baseline, contender)
    return _to_settle(spread, 2, margin, min(len(baseline), len(contender)))


def blocks_to_settle(ratios: Sequence[float], margin: float) -> int | None:
    """Estimate the blocks that would show an unchanged build to be equivalent.

    ``((z_.95 + z_.9) * s / log(1 + margin))^2 / ARE`` with ``s`` the standard deviation of the log
    ratios; otherwise as ``trials_to_settle``.
    """
    return _to_settle(_spread(ratios), 1, margin, len(ratios))


def _to_settle(spread: float | None, samples: int, margin: float, present: int) -> int | None:
    if spread is None:
        return None
    quantiles = special.ndtri(1 - LEVEL) + special.ndtri((1 + POWER) / 2)
    needed = samples * (quantiles * spread / math.log1p(margin)) ** 2 / _RANK_EFFICIENCY
    return _beyond(max(ENOUGH, math.ceil(needed)), present)


def detectable_difference(n: int, discordant: int, bound: float) -> float | None:
    """Estimate the smallest difference of shares that these documents would call one.

    ``(z_.95 + z_.8) * sqrt(discordant share / n)`` (Connor, Biometrics 43, 1987, first order, for a
    one-sided test), or ``bound + z_.8 * sqrt(discordant share / n)``; the larger counts.

    ``discordant`` documents of ``n`` on both sides were answered right on one side only. ``None``
    where even the largest would not show.
    """
    error = math.sqrt(_discordance(n, discordant) / n)
    power = special.ndtri(POWER)
    size = float(max((special.ndtri(1 - LEVEL) + power) * error, bound + power * error))
    return size if size < 1 else None


def documents_to_settle(n: int, discordant: int, margin: float) -> int:
    """Estimate the documents that would show an unchanged build to be equivalent.

    ``discordant share * ((z_.95 + z_.9) / margin)^2``, doubled as in ``trials_to_settle``; never
    less than the documents that prove sameness if not one of them is discordant.
    """
    one_sided = special.ndtri(1 - LEVEL)
    quantiles = one_sided + special.ndtri((1 + POWER) / 2)
    usual = _discordance(n, discordant) * (quantiles / margin) ** 2
    fewest = one_sided**2 * (1 - margin) / margin
    return _beyond(math.ceil(max(usual, fewest)), n)


def _discordance(n: int, discordant: int) -> float:
    # Half a document more than seen: none seen does not mean that none exist.
    return (discordant + 0.5) / (n + 1)


def _beyond(needed: int, present: int) -> int:
    return needed if needed > present else 2 * present


def _log_spread(baseline: Sequence[float], contender: Sequence[float]) -> float | None:
    freedom = len(baseline) + len(contender) - 2
    if freedom < 1 or min(*baseline, *contender) <= 0:
        return None
    # Sorted, because the last digit of a sum depends on its order and a report must not.
    logs = [np.log(np.sort(side)) for side in (baseline, contender)]
    squares = sum(float(np.sum((side - np.mean(side)) ** 2)) for side in logs)
    return math.sqrt(squares / freedom) or None


def _spread(ratios: Sequence[float]) -> float | None:
    if len(ratios) < 2:
        return None
    # Sorted, because the last digit of a sum depends on its order and a report must not. Ratios
    # that are equal but for that digit have no spread.
    spread = float(np.std(np.sort(ratios), ddof=1))
    return spread if spread > _NO_SPREAD else None
