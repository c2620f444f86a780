"""From the raw values of a trial to the one number by which it is compared.

Requests of one trial share an engine, a schedule and a moment, so they are no independent
repeats; trials are. Every test therefore sees one number per trial.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from types import MappingProxyType
from typing import Final

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.subject import Subject
from hybridwatch.metrics import Kind
from hybridwatch.records.run import Sample, Trial


def _quantile(values: list[float], share: float) -> float:
    """Interpolate linearly, as vLLM's own serving benchmark does.

    The same to the last bit as ``numpy.quantile``, which takes ten times as long for the few
    requests of a trial.
    """
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


_MANY: Final = 100
"""Samples of a trial from which on they are looked up: an ingested trial may have thousands, of as
many metrics, and each metric would go through all."""
_KEPT: Final = 128
"""Such trials whose samples are kept by metric."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """One side, one number per trial.

    Attributes:
        trials: Those that count, in order of measurement.
        values: In order of measurement; base units. For a proportion every document's 1.0 or
            0.0 of the first trial.
        by_trial: One number per trial by its index; for a proportion the share of right answers.
        broken: Trials left out because a value was no finite number.
    """

    trials: tuple[Trial, ...]
    values: tuple[float, ...]
    by_trial: Mapping[int, float]
    broken: int


def reduce_side(side: OneSide, subject: Subject) -> Reduced:
    """Reduce every counting trial of a side to the subject's statistic.

    Trials without a value of the metric contribute nothing.
    """
    trials = side.trials(subject.phase)
    series = [(trial.index, found) for trial in trials if (found := _values(trial, subject))]
    whole = [(index, values) for index, values in series if all(map(math.isfinite, values))]
    reducer = _REDUCERS[subject.statistic]
    by_trial = {index: reducer(values) for index, values in whole}
    # A comparison looks at documents; what has a history is each trial's share of right ones.
    documents = whole[0][1] if whole and subject.metric.kind is Kind.PROPORTION else None
    values = tuple(by_trial.values() if documents is None else documents)
    return Reduced(trials, values, by_trial, len(series) - len(whole))


def _values(trial: Trial, subject: Subject) -> list[float]:
    # A value that came reduced stands for its own statistic only.
    return [
        value
        for sample in _samples(trial, subject.metric.id)
        if sample.metric == subject.metric.id and sample.statistic in {None, subject.statistic}
        for value in sample.values
    ]


def _samples(trial: Trial, metric: str) -> Sequence[Sample]:
    """Give the samples among which those of a metric are."""
    if len(trial.samples) < _MANY:
        return trial.samples
    return _by_metric(_Itself(trial)).get(metric, ())


@dataclass(frozen=True, slots=True, eq=False)
class _Itself:
    """A trial that is equal to nothing but itself, which takes no look at its values."""

    trial: Trial

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.trial is self.trial

    def __hash__(self) -> int:
        return id(self.trial)


@lru_cache(maxsize=_KEPT)
def _by_metric(itself: _Itself) -> Mapping[str, Sequence[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in itself.trial.samples:
        found.setdefault(sample.metric, []).append(sample)
    return found
