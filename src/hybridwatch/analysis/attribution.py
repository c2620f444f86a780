"""Why tokens per second changed: steps per second, acceptance length or batch occupancy.

Of every trial, ``tokens / s = steps / s * requests / step * tokens / (request and step)`` holds to
the last digit, so the logarithms of the three, and their means, add up to that of the throughput.

A factor moved when the t interval of its mean logarithm leaves out zero. One that did not move is
so called a cause 1 time in 40, since a cause must also have moved the way of the throughput.
Medians would not add up, and a percentile bootstrap of a mean is too narrow at seven trials.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from statistics import fmean, stdev, variance
from typing import Final

from scipy import special

from hybridwatch.analysis.rank import CONFIDENCE
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Attribution, Comparison, Design, Factor, Interval, Verdict
from hybridwatch.records.run import Phase, Trial

EXPLAINED: Final = "output_throughput"

_CHANGES: Final = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT})
_FEWEST: Final = 4
"""Trials a side, or blocks; as for the verdict itself."""
_DIGITS: Final = 12
"""Of a logarithm; beyond is what the product of three factors leaves of a number that is 1."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The factors of one trial's output throughput; their product is the throughput.

    ``engine_step_rate`` is per second, ``acceptance_length`` tokens that a request got per step (1
    where nothing is drafted), ``batch_occupancy`` requests that got tokens per step.
    """

    engine_step_rate: float
    acceptance_length: float
    batch_occupancy: float


def compute_attribution(
    comparisons: Iterable[Comparison], baseline: OneSide, contender: OneSide
) -> Attribution | None:
    """Say why the output throughput of a report changed.

    ``None`` unless it regressed or improved, where the trials do not hold the factors, and where
    their mean changed in the other direction.
    """
    changed = [c for c in comparisons if c.metric.id == EXPLAINED and c.verdict in _CHANGES]
    if not changed:
        return None
    # Failed trials keep their place, so that the two of a block stay together.
    left, right = (
        [read_parts(trial) for trial in side.planned(Phase.PERFORMANCE)]
        for side in (baseline, contender)
    )
    found = attribute(left, right, paired=changed[0].design is Design.PAIRED)
    # The effect of the comparison is a median: a wild trial may turn the mean the other way.
    agree = found is not None and found.effect * (changed[0].effect or 0.0) > 0
    return found if agree else None


def attribute(
    baseline: Sequence[Parts | None], contender: Sequence[Parts | None], *, paired: bool
) -> Attribution | None:
    """Divide a change of output throughput among its factors; trials of equal place make a block.

    ``None`` stands for a trial that does not hold the factors; it is the result below four trials a
    side (blocks, if paired), and when the throughput's geometric mean did not change at all.
    """
    left, right = _logs(baseline), _logs(contender)
    if paired:
        both = [turn for turn in left if turn in right]
        left, right = ({at: side[at] for at in both} for side in (left, right))
    if min(len(left), len(right)) < _FEWEST:
        return None
    change_of = _paired_change if paired else _unpaired_change
    columns = zip(zip(*left.values(), strict=True), zip(*right.values(), strict=True), strict=True)
    changes = [change_of(*column) for column in columns]
    total = math.fsum(size for size, _ in changes)
    if total == 0:
        return None
    factors = tuple(
        _factor(field.name, *change, total)
        for field, change in zip(fields(Parts), changes, strict=True)
    )
    return Attribution(EXPLAINED, math.expm1(total), factors)


def _logs(parts: Sequence[Parts | None]) -> dict[int, tuple[float, ...]]:
    return {
        # Adding zero makes 0.0 of -0.0, which a view would show as a fall.
        turn: tuple(round(math.log(part), _DIGITS) + 0.0 for part in astuple(some))
        for turn, some in enumerate(parts)
        if some is not None
    }


def _factor(name: str, size: float, wide: float, total: float) -> Factor:
    return Factor(
        name=name,
        effect=math.expm1(size),
        interval=Interval(math.expm1(size - wide), math.expm1(size + wide), CONFIDENCE),
        share=size / total if size else 0.0,
    )


def _paired_change(left: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """Mean change of a logarithm, and half the width of its interval."""
    changes = [other - one for one, other in zip(left, right, strict=True)]
    error = stdev(changes) / math.sqrt(len(changes))
    return fmean(changes), _quantile(len(changes) - 1) * error


def _unpaired_change(left: Sequence[float], right: Sequence[float]) -> tuple[float, float]:
    """The same of independent trials, whose spread may differ (Welch 1947)."""
    parts = [(variance(side) / len(side), len(side)) for side in (left, right)]
    error = sum(part for part, _ in parts)
    spent = sum(part**2 / (n - 1) for part, n in parts)
    wide = _quantile(error**2 / spent) * math.sqrt(error) if spent else 0.0
    return fmean(right) - fmean(left), wide


def _quantile(freedom: float) -> float:
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def read_parts(trial: Trial) -> Parts | None:
    """Read the factors of a trial's output throughput; ``None`` where one is no positive number."""
    values = {sample.metric: sample.values for sample in trial.samples}
    wanted = (EXPLAINED, "engine_step_rate", "batch_occupancy")
    found = [value for name in wanted for value in values.get(name, ())]
    if len(found) != len(wanted) or not all(math.isfinite(v) and v > 0 for v in found):
        return None
    throughput, rate, occupancy = found
    return Parts(rate, throughput / rate / occupancy, occupancy)
