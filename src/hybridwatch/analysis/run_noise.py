"""How much runs of one build differ from one to the next: the noise that trials of a run hide.

Trials of one run share a start of the engine, a memory layout and a day. Two runs of the same build
therefore differ by more than the trials of each show. Earlier runs show by how much.

Spikes, modes and long tails make the largest difference many times the usual one, and a metric that
has them may not have shown them in 20 runs. So all metrics of a report share what any of them did:
each is bounded by its own usual difference, times the most by which a difference of any metric
exceeds the usual one of that metric. A report of runs that are alike, however they scatter and
whatever their metrics have in common, is then red in at most 1 of n + 1 cases, with n earlier runs:
the contender must be further from the baseline than each of these, and each is as likely to be the
furthest (a conformal bound: Vovk, Gammerman and Shafer, "Algorithmic learning in a random world",
2005). Neglected is that the usual difference is learned without the contender.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.pair import summarize
from hybridwatch.analysis.subject import OneSide, Subject, list_subjects
from hybridwatch.metrics import Kind, Metric

Noise = Mapping[tuple[str, str], float]
"""By metric id and statistic: the noise from run to run, a fraction."""

FEWEST_RUNS: Final = 20
"""Earlier runs that bound a false red at 1 in 21; fewer cannot bound it at 5 %."""
REMEMBERED: Final = 30
"""Runs that count, the newest: what a machine did a year ago says little of its noise today,
and a history of any length takes the same time to read."""
REACH: Final = 5.0
"""Times the noise that a change between two runs must exceed. By this the noise of runs that
scatter normally is about their standard deviation."""

_LEAST: Final[Mapping[str, float]] = {"asv_time": 0.08}
"""The least noise, by the metric's family. The usual difference between runs of asv says little of
the largest; ``hybridwatch_lab.calibration.asv_files`` has what this gives on real histories."""

_OF_STARTS: Final[Mapping[str, float]] = {"resident_memory": 0.002, "peak_memory": 0.002}
"""How far two engines of one build are apart in it for as long as they live, by the metric. No
number of trials of the two tells that from a change (``docs/measuring.md``, "Memory")."""

_USUAL: Final = 0.75
"""Share of the differences, the smallest, whose mean is the usual one. One run of 20 that is far
off makes a tenth of all differences large, and two modes half of them."""
_ORDERS: Final = 10_000
"""Ways to choose the runs on one side of a lasting change, of which chance has 2 look like one."""

_Array = npt.NDArray[np.float64]


def reach_of(noise: float | None) -> float:
    """Give the relative change that two equal runs do not reach; 0 where no noise is known."""
    return REACH * (noise or 0.0)


@dataclass(frozen=True, slots=True)
class _Spread:
    """How far runs of one build at one level lie apart: differences of logarithms."""

    usual: float
    largest: float


def learned_noise(series: Iterable[tuple[Metric, Sequence[float]]]) -> list[float | None]:
    """Learn the noise of metrics that stand in one report.

    Each has one value per run of a build, oldest first. ``None`` below 20 runs, where a value is
    not positive and finite, and where most runs are the same but some stray; 0 where all are the
    same, of a count but for one change.
    """
    found = [(metric, _find_spread(metric, centers)) for metric, centers in series]
    # What stays within the margin is never red, and nothing to hold against the others.
    factor = max(
        (one.largest / one.usual for metric, one in found if one and one.largest > metric.bound),
        default=0.0,
    )
    learned: list[float | None] = []
    for metric, one in found:
        apart = 0.0 if one is None else max(one.largest, factor * one.usual)
        worse = -math.expm1(-apart) if metric.better.is_worse(-1.0) else math.expm1(apart)
        learned.append(None if one is None else worse / REACH)
    return learned


def _find_spread(metric: Metric, centers: Sequence[float]) -> _Spread | None:
    values = np.asarray(centers, dtype=float)
    if len(values) < FEWEST_RUNS:
        return None
    # A count that is another one in one run of 21 passes for one that repeats in 4 of 10 histories,
    # and is then called changed in 1 of 21 comparisons: 2 %, the most there is.
    if metric.kind is Kind.COUNT and np.count_nonzero(np.diff(values)) <= 1:
        return _Spread(0.0, 0.0)
    if not (np.isfinite(values).all() and values.min() > 0):
        return None
    levels = _find_levels(np.log(values))
    apart = np.concatenate(
        [np.abs(np.subtract.outer(x, x))[np.triu_indices(x.size, 1)] for x in levels]
    )
    apart.sort()
    spread = _Spread(float(apart[: int(_USUAL * apart.size)].mean()), float(apart[-1]))
    return spread if spread.usual > 0 or spread.largest == 0 else None


def _find_levels(values: _Array) -> list[_Array]:
    """Part a series where its level changed for good: all on one side are above all on the other.

    Chance does that at a place in 2 of as many cases as there are choices of the runs before it;
    places where these are few do not count. So five of 20 runs must be on either side, four of 30.
    """
    gaps = {
        at: max(after.min() - before.max(), before.min() - after.max())
        for at in range(1, values.size)
        if math.comb(values.size, at) >= _ORDERS
        for before, after in [(values[:at], values[at:])]
    }
    at = max(gaps, key=gaps.__getitem__, default=0)
    if not at or gaps[at] <= 0:
        return [values]
    return [*_find_levels(values[:at]), *_find_levels(values[at:])]


def least_noise(metric: Metric) -> float:
    """Give the noise between runs that is taken for granted; 0 where nothing is."""
    return _LEAST.get(metric.id.partition(".")[0], 0.0)


def start_noise(metric: Metric) -> float | None:
    """Give the noise between two starts of one build; ``None`` where it is not taken for known."""
    return _OF_STARTS.get(metric.id)


def noise_between(
    history: Iterable[OneSide], baseline: OneSide, contender: OneSide
) -> dict[tuple[str, str], float]:
    """Learn the noise of every time, rate and count that two sides of two runs share.

    ``history``, oldest first, says something where scenario, testbed and build label are the same.
    Of the two builds' series the larger noise counts, where at least one is long enough. A compared
    run is one of its build's, so that a baseline which is off excuses what it makes of the
    contender; of two runs of one build the baseline alone.
    """
    # A start on a cold disk must not say how much the other metrics may differ.
    subjects = [
        one
        for one in list_subjects(baseline, contender)
        if one.metric.kind.has_noise and not one.metric.is_of_start
    ]
    found: dict[tuple[str, str], float] = {}
    for sides in _series(history, baseline, contender):
        learned = learned_noise((one.metric, _centers(sides, one)) for one in subjects)
        for subject, noise in zip(subjects, learned, strict=True):
            key = subject.metric.id, subject.statistic
            if noise is not None:
                found[key] = max(noise, found.get(key, 0.0))
    return found


def _series(
    history: Iterable[OneSide], baseline: OneSide, contender: OneSide
) -> list[list[OneSide]]:
    def fits(side: OneSide) -> bool:
        return (
            side.run.scenario == contender.run.scenario
            and side.run.testbed.id == contender.run.testbed.id
        )

    by_label: defaultdict[str, list[OneSide]] = defaultdict(list)
    for side in history:
        if fits(side) and side.run.id not in {baseline.run.id, contender.run.id}:
            by_label[side.build.label].append(side)
    compared = {contender.build.label: contender, baseline.build.label: baseline}
    return [
        sorted((*by_label[label], *filter(fits, [own])), key=lambda side: side.run.started_at)
        for label, own in compared.items()
        if len(by_label[label]) >= FEWEST_RUNS
    ]


def _centers(sides: Iterable[OneSide], subject: Subject) -> list[float]:
    summaries = (summarize(subject, side) for side in sides)
    return [summary.center for summary in summaries if summary is not None]
