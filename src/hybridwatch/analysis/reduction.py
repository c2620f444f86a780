"""From the raw values of a trial to the one number by which it is compared.

Requests of one trial share an engine, a schedule and a moment, so they are no independent
repeats; trials are. Every test therefore sees one number per trial.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.subject import Subject
from hybridwatch.metric import Kind

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
    series = [
        list(sample.values)
        for trial in side.trials(subject.phase)
        for sample in trial.samples
        if sample.metric == subject.metric.id and sample.values
    ]
    whole = [values for values in series if all(map(math.isfinite, values))]
    if subject.metric.kind is Kind.PROPORTION:
        return Reduced(tuple(whole[0]) if whole else (), len(series) - len(whole))
    numbers = _reduce_all(whole, subject.statistic)
    return Reduced(numbers, len(series) - len(whole))


def _reduce_all(series: Iterable[list[float]], statistic: str) -> tuple[float, ...]:
    return tuple(_REDUCERS[statistic](values) for values in series)
