"""Two sides of one subject, their trials reduced once: what every rule and every doubt receives.

Requests of one trial share an engine, a schedule and a moment, so they are no independent repeats;
trials are. Every test therefore sees one number per trial. Sides that are measured in turn, A B B
A, form blocks: the k-th planned trial of each, whose ratio is free of what the machine is up to.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Final

import numpy as np

from hybridwatch.analysis.signed_rank import SETTLING_BLOCKS
from hybridwatch.analysis.subject import OneSide, Subject
from hybridwatch.analysis.verdict import Interval, Summary
from hybridwatch.metrics import Direction, Kind, Metric
from hybridwatch.records.run import KEPT_CONFIDENCE, Phase, Sample, Trial


def _quantile(values: list[float], share: float) -> float:
    """Interpolate linearly, as vLLM's benchmark does; a few values ten times as fast as NumPy's."""
    ranked = sorted(values)
    place = (len(ranked) - 1) * share
    below = math.floor(place)
    low, high = ranked[below], ranked[min(below + 1, len(ranked) - 1)]
    part = place - below
    step = high - low
    return high - step * (1 - part) if part >= 0.5 else low + step * part


_REDUCERS: Final[Mapping[str, Callable[[list[float]], float]]] = MappingProxyType(
    {
        "value": math.fsum,
        "mean": lambda values: math.fsum(values) / len(values),
        "median": median,
        "p99": lambda values: _quantile(values, 0.99),
    }
)


@dataclass(frozen=True, slots=True)
class ReducedSide:
    """One side of a subject, one number per trial.

    Attributes:
        name: ``baseline`` or ``contender`` in a pair.
        failures: Trials of the phase that gave no measurement, warm-ups included.
        values: In order of measurement; base units. For a proportion every document's 1.0 or
            0.0 of the first trial.
        by_trial: One number per trial by its index; for a proportion the share of right answers.
        summary: ``None`` without a value.
        broken: Trials left out because a value was no finite number.
        interval: Of the one value, a positive median of samples that were not kept.
    """

    name: str
    side: OneSide
    trials: tuple[Trial, ...]
    failures: int
    values: tuple[float, ...]
    by_trial: Mapping[int, float]
    summary: Summary | None
    broken: int
    interval: Interval | None


def reduce_side(side: OneSide, subject: Subject, name: str = "") -> ReducedSide:
    """Reduce every counting trial of a side that has a value of the metric to one number."""
    trials = side.trials(subject.phase)
    samples = side.samples(subject.phase, subject.metric.id)
    series: dict[int, list[float]] = {}
    for index, sample in samples:
        # A value that came reduced stands for its own statistic only.
        if sample.values and sample.statistic in {None, subject.statistic}:
            series.setdefault(index, []).extend(sample.values)
    whole = [(index, values) for index, values in series.items() if all(map(math.isfinite, values))]
    reducer = _REDUCERS[subject.statistic]
    by_trial = {index: reducer(values) for index, values in whole}
    # A comparison looks at documents; what has a history is each trial's share of right ones.
    documents = whole[0][1] if whole and subject.metric.kind is Kind.PROPORTION else None
    values = tuple(by_trial.values() if documents is None else documents)
    interval = _interval((one for _, one in samples), subject) if len(values) == 1 else None
    return ReducedSide(
        name=name,
        side=side,
        trials=trials,
        failures=len(side.failures(subject.phase)),
        values=values,
        by_trial=by_trial,
        summary=_compute_summary(subject.metric, values),
        broken=len(series) - len(whole),
        interval=interval,
    )


def _compute_summary(metric: Metric, values: Sequence[float]) -> Summary | None:
    if not values:
        return None
    match metric.kind:
        case Kind.EXACT:
            worst = max if metric.better is Direction.LOWER else min
            return Summary(worst(values), tuple(values))
        case Kind.PROPORTION:
            return Summary(float(np.mean(values)), tuple(values))
        case Kind.COUNT | Kind.RATE | Kind.TIME:
            return Summary(float(np.median(values)), tuple(values))


def _interval(samples: Iterable[Sample], subject: Subject) -> Interval | None:
    found = (
        Interval(*one.interval, KEPT_CONFIDENCE)
        for one in samples
        if one.interval and min(*one.interval, *one.values) > 0
    )
    return next(found, None) if subject.statistic == subject.metric.kind.statistic else None


@dataclass(frozen=True, slots=True)
class Blocks:
    """Both sides of a metric, block by block, in order of measurement; base units.

    Attributes:
        planned: Blocks begun, those included in which a side failed or gave no finite value.
        starts: Which start of the engines each whole block was made on; ``None`` where all trials
            of its look were made on one.
    """

    baseline: tuple[float, ...]
    contender: tuple[float, ...]
    planned: int
    starts: tuple[int | None, ...] = ()

    @property
    def n(self) -> int:
        """Count the whole blocks."""
        return len(self.baseline)

    @property
    def has_ratios(self) -> bool:
        """Whether every number is positive, so that a ratio exists."""
        return min(*self.baseline, *self.contender, np.inf) > 0

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """Logarithm of contender / baseline of each block."""
        # A difference of logarithms, so that 3 -> 4 and 4 -> 3 are exact opposites.
        return tuple((np.log(self.contender) - np.log(self.baseline)).tolist())

    @property
    def start_ratios(self) -> tuple[float, ...]:
        """Mean of the logarithms of each start's blocks; empty below six, or without starts.

        Blocks of one start share its luck. Sides start apart, so that without a change the mean of
        a start is as likely to be above 0 as below, however much starts differ.
        """
        if not self.starts or None in self.starts:
            return ()
        by_start: dict[int | None, list[float]] = {}
        for start, ratio in zip(self.starts, self.log_ratios, strict=True):
            by_start.setdefault(start, []).append(ratio)
        if len(by_start) < SETTLING_BLOCKS:
            return ()
        return tuple(math.fsum(ratios) / len(ratios) for ratios in by_start.values())


def build_blocks(
    baseline: OneSide,
    contender: OneSide,
    phase: Phase,
    old: Mapping[int, float],
    new: Mapping[int, float],
) -> Blocks | None:
    """Pair the trials of two sides, by index; ``None`` unless they were measured in turn."""
    if baseline.run.id != contender.run.id or baseline.index == contender.index:
        return None
    left, right = baseline.planned(phase), contender.planned(phase)
    if not _in_turn(left, right):
        return None
    pairs = [
        (old.get(a.index), new.get(b.index), a.start) for a, b in zip(left, right, strict=False)
    ]
    whole = [(a, b, start) for a, b, start in pairs if a is not None and b is not None]
    baselines, contenders, starts = zip(*whole, strict=True) if whole else ((), (), ())
    return Blocks(baselines, contenders, max(len(left), len(right)), starts)


def _in_turn(left: tuple[Trial, ...], right: tuple[Trial, ...]) -> bool:
    order = sorted(trial.index for trial in (*left, *right))
    place = {index: at for at, index in enumerate(order)}
    return all(abs(place[a.index] - place[b.index]) == 1 for a, b in zip(left, right, strict=False))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides of one subject.

    Attributes:
        blocks: How the trials pair; ``None`` when they do not, or where no machine disturbs them.
        repeated_before: Whether earlier runs of a build say that a count comes out again, so that
            one trial a side is enough.
    """

    subject: Subject
    baseline: ReducedSide
    contender: ReducedSide
    blocks: Blocks | None
    repeated_before: bool = False

    @property
    def sides(self) -> tuple[ReducedSide, ReducedSide]:
        """Both, the baseline first."""
        return self.baseline, self.contender

    @property
    def of_one_run(self) -> bool:
        """Whether one run measured both sides."""
        return self.baseline.side.run.id == self.contender.side.run.id

    @property
    def intervals(self) -> tuple[Interval, Interval] | None:
        """What either side kept of its median in place of samples; ``None`` unless both did."""
        left, right = (side.interval for side in self.sides)
        return (left, right) if left and right else None

    @property
    def repeats(self) -> bool:
        """Whether the values are counts that never vary; equal times only show a coarse clock."""
        return self.subject.metric.kind is Kind.COUNT and all(
            one is not None
            and (one.repeats or (self.repeated_before and len(set(one.values)) == 1))
            for one in (side.summary for side in self.sides)
        )

    @property
    def has_single_values_of_asv(self) -> bool:
        """Whether asv kept one number of each side."""
        return all(
            side.side.run.source is not None
            and side.side.run.source.format == "asv"
            and side.summary is not None
            and side.summary.n == 1
            for side in self.sides
        )


def build_pair(subject: Subject, baseline: OneSide, contender: OneSide) -> Pair:
    """Reduce every trial of two sides to the subject's statistic, once."""
    left = reduce_side(baseline, subject, "baseline")
    right = reduce_side(contender, subject, "contender")
    blocks = None
    if subject.metric.kind.has_noise:
        blocks = build_blocks(baseline, contender, subject.phase, left.by_trial, right.by_trial)
    return Pair(subject, left, right, blocks)


def summarize(subject: Subject, side: OneSide) -> Summary | None:
    """Reduce one side to its center and the numbers behind it; ``None`` when it has none."""
    return reduce_side(side, subject).summary
