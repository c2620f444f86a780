"""How sure asv may be of a number: the interval that it keeps beside each.

asv compares runs, and knows of each only how its trials scatter. Runs of one build scatter by more
(``analysis.noise``). So its intervals are widened by what earlier runs tell; without such runs they
are infinite, and ``asv compare`` calls no time worse. Samples are not given to asv: it would
compare them by rank and forget the interval.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hybridwatch.analysis.machine_state import was_restless
from hybridwatch.analysis.noise import REACH
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import summarize
from hybridwatch.analysis.subject import Subject
from hybridwatch.formats.write.asv_benchmarks import Form, Tracked
from hybridwatch.metrics import Kind
from hybridwatch.scenarios.scenario import MIN_PERFORMANCE_TRIALS

IN_DOUBT: Final = math.inf
"""Noise of a side whose times say nothing: too few trials, or a restless machine."""

_NORMAL: Final = 2.5758
"""Quantile of the normal distribution for an interval of 99 %."""
_WEIGHTLESS: Final = (-1e308, 1e308)
"""Finite ends whose distance is not: asv gives the value the weight 0, and looks for no step in it,
while it takes a missing or an infinite interval for one of the usual width."""


def noise_of(subject: Subject, side: OneSide, learned: float | None) -> float | None:
    """Say by how much a number may differ in another run of the same build, as a fraction.

    Args:
        subject: Metric and statistic.
        side: A side that has it.
        learned: What earlier runs tell; ``None`` where they are too few.

    Returns:
        0 for a count that no trial changed, ``IN_DOUBT`` where the number says nothing by itself.
    """
    summary, trials = summarize(subject, side), side.trials(subject.phase)
    if subject.metric.kind is Kind.COUNT and summary is not None and summary.repeats:
        return 0.0
    few = summary is None or summary.n < MIN_PERFORMANCE_TRIALS
    return IN_DOUBT if few or was_restless(trials) else learned


def stats_of(
    benchmark: Tracked, values: Sequence[float], noise: float | None
) -> Mapping[str, float] | None:
    """Give what asv keeps beside a number; ``None`` for what counts exactly.

    Args:
        benchmark: Which number.
        values: In our terms: one per trial, or for answers one per document.
        noise: From ``noise_of``; without meaning for answers.
    """
    if benchmark.form is Form.WORST:
        return None
    own = [benchmark.form.of(value) for value in values]
    if benchmark.form is Form.WRONG:
        quartiles = [float(np.mean(own))] * 2
        low, high = _share_between(quartiles[0], len(own))
    else:
        quartiles = [float(np.quantile(own, part)) for part in (0.25, 0.75)]
        low, high = _between(own, noise)
    return {
        "ci_99_a": low,
        "ci_99_b": high,
        "q_25": quartiles[0],
        "q_75": quartiles[1],
        "number": 1,
        "repeat": len(own),
    }


def _between(values: Sequence[float], noise: float | None) -> tuple[float, float]:
    """Bracket the medians of runs of the build."""
    if noise == IN_DOUBT:
        return _WEIGHTLESS
    if noise is None:
        return -math.inf, math.inf
    # Two such intervals part where the medians do by more than both halves: REACH times the noise.
    center, half = float(np.median(values)), REACH * noise / 2
    return center * (1 - half), center * (1 + half)


def _share_between(share: float, n: int) -> tuple[float, float]:
    """Bracket a share of n documents, 99 % (Wilson 1927)."""
    square = _NORMAL**2 / n
    center = share + square / 2
    half = _NORMAL * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return (center - half) / (1 + square), (center + half) / (1 + square)
