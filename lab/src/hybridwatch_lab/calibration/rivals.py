"""Detectors and rules in use elsewhere, in their simplest form, to compare ours with.

These are written from descriptions of the rules, not from their code, and keep only what
decides. A detector claims every change point of a series; what it would say point by point follows
by asking it again as the series grows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from asv.step_detect import detect_steps
from numpy.lib.stride_tricks import sliding_window_view
from scipy import stats

from hybridwatch.analysis.change_point import HistoryState
from hybridwatch.analysis.change_point.examine import examine
from hybridwatch.analysis.paired_proportion import Pairs
from hybridwatch_lab.calibration.simulated import Array


@dataclass(frozen=True, slots=True, order=True)
class Alarm:
    """A claim that the level changed.

    Attributes:
        index: First point of the new level.
        confirmed: Whether the detector stands by it; ``False`` for a suspicion.
    """

    index: int
    confirmed: bool = True


Detector = Callable[[Array], tuple[Alarm, ...]]
"""Takes the values of a series up to now, oldest first."""


def ours(values: Array) -> tuple[Alarm, ...]:
    """Run the shipped detector on the values alone."""
    return tuple(
        Alarm(point.index, point.state is HistoryState.CONFIRMED)
        for point in examine(values).points
    )


_PREVIOUS: Final = 0.10
_DASHBOARD: Final = 0.20
_DASHBOARD_DAYS: Final = 3
_ROLLING: Final = 0.05
_ROLLING_POINTS: Final = 10
_STATISTIC: Final = 7.0
_STATISTIC_CHANGE: Final = 0.02
_STATISTIC_POINTS: Final = 12
_PENALTY: Final = 1.5
_SHORTEST_SEGMENT: Final = 3
_DIVISIVE_P: Final = 0.001
_FENCE_POINTS: Final = 30
_FENCE: Final = 3.0


def against_previous(values: Array) -> tuple[Alarm, ...]:
    """10 % against the value before, as in the simplest scripts."""
    return _alarms(1 + np.flatnonzero(np.abs(values[1:] / values[:-1] - 1) > _PREVIOUS))


def against_days(values: Array) -> tuple[Alarm, ...]:
    """20 % against the median of the three values before, as PyTorch's HUD."""
    return _against_median(values, _DASHBOARD_DAYS, _DASHBOARD)


def against_rolling_median(values: Array) -> tuple[Alarm, ...]:
    """5 % against the median of the ten values before."""
    return _against_median(values, _ROLLING_POINTS, _ROLLING)


def sliding_t(values: Array) -> tuple[Alarm, ...]:
    """T above 7 and 2 % between 12 values before and 12 after, at its peak, as Perfherder."""
    width = _STATISTIC_POINTS
    if len(values) < 2 * width:
        return ()
    windows = sliding_window_view(values, width)
    before, after = windows[:-width], windows[width:]
    distance = after.mean(axis=1) - before.mean(axis=1)
    error = np.sqrt((before.var(axis=1, ddof=1) + after.var(axis=1, ddof=1)) / width)
    height = np.abs(distance) / np.maximum(error, np.finfo(float).tiny)
    large = np.abs(distance / before.mean(axis=1)) > _STATISTIC_CHANGE
    around = sliding_window_view(np.pad(height, width, constant_values=-np.inf), 2 * width + 1)
    peaks = (height > _STATISTIC) & large & (height >= around.max(axis=1))
    return _alarms(width + np.flatnonzero(peaks))


def outside_fences(values: Array) -> tuple[Alarm, ...]:
    """A step beyond Q3 + 3 IQR of the last 30 steps, as rustc-perf."""
    steps = np.abs(values[1:] / values[:-1] - 1)
    if len(steps) <= _FENCE_POINTS:
        return ()
    past = sliding_window_view(steps, _FENCE_POINTS)[:-1]
    first, third = np.quantile(past, (0.25, 0.75), axis=1)
    outside = steps[_FENCE_POINTS:] > third + _FENCE * (third - first)
    return _alarms(1 + _FENCE_POINTS + np.flatnonzero(outside))


def kernel_segments(values: Array) -> tuple[Alarm, ...]:
    """Segments of least kernel cost, 1.5 ln n for each more, as KernelCPD of ruptures.

    The kernel is Gaussian, as wide as the median distance of two points (Arlot, Celisse and
    Harchaoui 2019); the best segments are found by dynamic programming.
    """
    logs, n = np.log(values), len(values)
    squares = (logs[:, None] - logs) ** 2
    typical = float(np.median(squares[np.triu_indices(n, 1)]))
    if typical == 0:
        return ()
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = np.exp(-squares / typical).cumsum(axis=0).cumsum(axis=1)
    corners = sums.diagonal()
    least, last = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    least[0], least[1:_SHORTEST_SEGMENT] = -_PENALTY * np.log(n), np.inf
    for end in range(_SHORTEST_SEGMENT, n + 1):
        start = np.arange(end - _SHORTEST_SEGMENT + 1)
        inside = corners[end] - 2 * sums[end, start] + corners[start]
        cost = least[start] + _PENALTY * np.log(n) + (end - start) - inside / (end - start)
        last[end] = cost.argmin()
        least[end] = cost.min()
    cuts = [int(last[n])]
    while cuts[-1]:
        cuts.append(int(last[cuts[-1]]))
    return _alarms(np.array(cuts[-2::-1], dtype=np.int64))


def divisive(values: Array) -> tuple[Alarm, ...]:
    """Split where the energy distance is greatest, while Student's p is below 0.001, as Otava.

    Matteson and James, "A nonparametric approach for multiple change point analysis", 2014, with
    the test that Otava put in the place of permutations. Without its windows and its merging, which
    matter to series longer than the 100 points that are shown here.
    """
    distances = np.zeros((len(values) + 1, len(values) + 1))
    distances[1:, 1:] = np.abs(values[:, None] - values).cumsum(axis=0).cumsum(axis=1)
    cuts: list[int] = []
    waiting = [(0, len(values))]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2 * _SHORTEST_SEGMENT or not np.ptp(values[start:end]):
            continue
        cut = _greatest_energy(distances, start, end)
        if _student_p(values[start:cut], values[cut:end]) < _DIVISIVE_P:
            cuts.append(cut)
            waiting += [(start, cut), (cut, end)]
    return _alarms(np.array(sorted(cuts), dtype=np.int64))


def _greatest_energy(distances: np.ndarray, start: int, end: int) -> int:
    """Find the split of a segment from the sums of distances of all points up to two places."""
    cut = np.arange(start + 2, end - 1)
    left, right = cut - start, end - cut
    corners = distances.diagonal()
    # Sums over all ordered pairs: within either part, and between the two.
    first = corners[cut] - 2 * distances[start, cut] + corners[start]
    second = corners[end] - 2 * distances[cut, end] + corners[cut]
    whole = corners[end] - 2 * distances[start, end] + corners[start]
    between = (whole - first - second) / (left * right)
    within = first / (left * (left - 1)) + second / (right * (right - 1))
    return int(cut[np.argmax((between - within) * left * right / (end - start))])


def _student_p(left: Array, right: Array) -> float:
    points = len(left) + len(right)
    pooled = (left.var() * len(left) + right.var() * len(right)) / (points - 2)
    error = np.sqrt(pooled * (1 / len(left) + 1 / len(right)))
    with np.errstate(divide="ignore"):  # two constants that differ
        return float(2 * stats.t.sf(abs(left.mean() - right.mean()) / error, points - 2))


def steps_of_asv(values: Array) -> tuple[Alarm, ...]:
    """Every step that ``asv publish`` draws, by asv itself."""
    return tuple(Alarm(start) for start, *_ in detect_steps(values.tolist())[1:])


def _against_median(values: Array, width: int, change: float) -> tuple[Alarm, ...]:
    if len(values) <= width:
        return ()
    usual = np.median(sliding_window_view(values, width)[:-1], axis=1)
    return _alarms(width + np.flatnonzero(np.abs(values[width:] / usual - 1) > change))


def _alarms(places: np.ndarray) -> tuple[Alarm, ...]:
    return tuple(Alarm(int(place)) for place in places)


FIELD: Final[Mapping[str, Detector]] = MappingProxyType(
    {
        "hybridwatch": ours,
        "10 % against the previous": against_previous,
        "HUD, 20 % against 3 values": against_days,
        "5 % against the median of 10": against_rolling_median,
        "Perfherder, t > 7 over 12 and 12": sliding_t,
        "KernelCPD, 1.5 ln n": kernel_segments,
        "Otava, t at 0.001": divisive,
        "asv publish, all its steps": steps_of_asv,
        "rustc-perf, Q3 + 3 IQR of 30": outside_fences,
    }
)


_FIXED: Final = 0.02
_STRICT: Final = 0.002
_FACTOR: Final = 1.1
_LEVEL: Final = 0.05
_SIGMAS: Final = 2.0
_TOLERANCE: Final = 0.08

RateRule = Callable[[Array, Array], bool]
"""From the trials of the baseline and those of the contender to "this changed"."""
AnswerRule = Callable[[Pairs, float], bool]
"""From a fourfold table and the baseline's share of right answers to "this is worse"."""


def _median_change(baseline: Array, contender: Array) -> float:
    return float(np.median(contender) / np.median(baseline))


def fixed_two_percent(baseline: Array, contender: Array) -> bool:
    """2 % between the medians, as vLLM's performance evaluation."""
    return abs(_median_change(baseline, contender) - 1) > _FIXED


def ranks_alone(baseline: Array, contender: Array) -> bool:
    """Mann-Whitney at 0.05, as benchstat."""
    return bool(stats.mannwhitneyu(baseline, contender).pvalue < _LEVEL)


def ranks_and_factor(baseline: Array, contender: Array) -> bool:
    """Mann-Whitney at 0.002 and a factor of 1.1, as ``asv compare``."""
    change = _median_change(baseline, contender)
    return max(change, 1 / change) > _FACTOR and bool(
        stats.mannwhitneyu(baseline, contender).pvalue < _STRICT
    )


def two_sigma(pairs: Pairs, share: float) -> bool:
    """Two standard errors between unpaired shares, as vLLM's performance evaluation."""
    later = share + pairs.difference
    error = np.sqrt((share * (1 - share) + later * (1 - later)) / pairs.n)
    return bool(-pairs.difference > _SIGMAS * error)


def relative_tolerance(pairs: Pairs, share: float) -> bool:
    """8 % of the share itself, as the lm-eval gates of vLLM's CI."""
    return bool(-pairs.difference > _TOLERANCE * share)


RATE_RULES: Final[Mapping[str, RateRule]] = MappingProxyType(
    {
        "2 % between medians (vLLM perf-eval)": fixed_two_percent,
        "Mann-Whitney 0.05 (benchstat)": ranks_alone,
        "Mann-Whitney 0.002 and 1.1 (asv compare)": ranks_and_factor,
    }
)
ANSWER_RULES: Final[Mapping[str, AnswerRule]] = MappingProxyType(
    {
        "2 sigma, unpaired (vLLM perf-eval)": two_sigma,
        "8 % of the share (vLLM's lm-eval gates)": relative_tolerance,
    }
)
