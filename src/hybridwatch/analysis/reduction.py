"""From the raw values of a trial to the one number by which it is compared.

Requests of one trial share an engine, a schedule and a moment, so they are no independent
repeats; trials are. Every test therefore sees one number per trial.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.subject import Subject
from hybridwatch.metric import Kind
from hybridwatch.record.run import Trial

_REDUCERS: Final[Mapping[str, Callable[[list[float]], float]]] = MappingProxyType(
    {
        "value": math.fsum,
        "mean": lambda values: math.fsum(values) / len(values),
        "median": lambda values: float(np.median(values)),
        # Linear interpolation, as in vLLM's own serving benchmark.
        "p99": lambda values: float(np.quantile(values, 0.99)),
    }
)


@dataclass(frozen=True, slots=True)
class Reduced:
    """One side, one number per trial.

    Attributes:
        values: In order of measurement; base units. For a proportion every document's 1.0 or
            0.0 of the first trial.
        broken: Trials left out because a value was no finite number.
    """

    values: tuple[float, ...]
    broken: int


def reduce_side(side: OneSide, subject: Subject) -> Reduced:
    """Reduce every counting trial of a side to the subject's statistic.

    Trials without a value of the metric contribute nothing.
    """
    series = [found for trial in side.trials(subject.phase) if (found := _values(trial, subject))]
    whole = [values for values in series if all(map(math.isfinite, values))]
    broken = len(series) - len(whole)
    if subject.metric.kind is Kind.PROPORTION:
        return Reduced(tuple(whole[0]) if whole else (), broken)
    return Reduced(tuple(_REDUCERS[subject.statistic](values) for values in whole), broken)


def reduce_trial(trial: Trial, subject: Subject) -> float | None:
    """Reduce one trial; ``None`` when it failed or gave no value or one that is not finite."""
    values = _values(trial, subject)
    if not values or not all(map(math.isfinite, values)):
        return None
    return _REDUCERS[subject.statistic](values)


def _values(trial: Trial, subject: Subject) -> list[float]:
    # A value that came reduced stands for its own statistic only.
    return [
        value
        for sample in trial.samples
        if sample.metric == subject.metric.id and sample.statistic in {None, subject.statistic}
        for value in sample.values
    ]
