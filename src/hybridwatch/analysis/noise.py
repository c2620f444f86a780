"""How much runs of one build differ from one to the next: the noise that trials of a run hide.

Trials of one run share a start of the engine, a memory layout and a day. Two runs of the same build
therefore differ by more than the trials of each tell, and a comparison of two runs that trusts
trials alone calls that a change. Earlier runs show by how much.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.pair import summarize
from hybridwatch.analysis.subject import Subject, list_subjects

Noise = Mapping[tuple[str, str], float]
"""By metric id and statistic: the relative standard deviation from run to run."""

FEWEST_RUNS: Final = 20
REMEMBERED: Final = 30
"""Runs that count, the newest: what a machine did a year ago says little of its noise today,
and a history of any length takes the same time to read."""
REACH: Final = 5.0
"""Times the noise that a change between two runs must exceed. Two equal runs differ by ``sqrt(2)``
times the noise, and noise learned from 20 runs is itself off by a fifth. A report of up to 14
metrics of such runs is then red in at most 1 case of 20."""

_NORMAL: Final = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""


def learned_noise(centers: Sequence[float]) -> float | None:
    """Estimate the relative noise of a series from the steps between neighbours.

    ``1.4826 * median |ln x[i+1] / x[i]| / sqrt(2)``: slow drift and a few changes of level touch
    few steps, and so not the median.

    ``centers`` has one value per run, oldest first. Gives a standard deviation as a fraction;
    ``None`` below 20 runs, and where a value is not positive and finite.
    """
    values = np.asarray(centers, dtype=float)
    if len(values) < FEWEST_RUNS or not (np.isfinite(values).all() and values.min() > 0):
        return None
    return float(_NORMAL * np.median(np.abs(np.diff(np.log(values)))) / np.sqrt(2))


def noise_between(
    history: Iterable[OneSide], baseline: OneSide, contender: OneSide
) -> dict[tuple[str, str], float]:
    """Learn the noise of every time, rate and count that two sides of two runs share.

    ``history`` has sides of stored runs, oldest first. Those of another scenario, testbed or build
    label and the two compared runs themselves say nothing. Of the two builds' series the larger
    noise counts, where at least one is long enough.
    """
    series = _series(history, baseline, contender)
    found: dict[tuple[str, str], float] = {}
    for subject in list_subjects(baseline, contender):
        if subject.metric.kind.has_noise:
            learned = [learned_noise(_centers(sides, subject)) for sides in series]
            known = [noise for noise in learned if noise is not None]
            if known:
                found[subject.metric.id, subject.statistic] = max(known)
    return found


def _series(
    history: Iterable[OneSide], baseline: OneSide, contender: OneSide
) -> list[list[OneSide]]:
    by_label: defaultdict[str, list[OneSide]] = defaultdict(list)
    for side in history:
        fits = (
            side.run.scenario == contender.run.scenario
            and side.run.testbed.id == contender.run.testbed.id
            and side.run.id not in {baseline.run.id, contender.run.id}
        )
        if fits:
            by_label[side.build.label].append(side)
    return [by_label[label] for label in {baseline.build.label, contender.build.label}]


def _centers(sides: Iterable[OneSide], subject: Subject) -> list[float]:
    summaries = (summarize(subject, side) for side in sides)
    return [summary.center for summary in summaries if summary is not None]
