"""What is looked for, and on which side of it a measurement lies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hybridwatch.errors import ComparisonError
from hybridwatch.metrics import METRICS, Kind, find_metric
from hybridwatch.orchestration.bisect.outcome import ProbeOutcome, ProbeState
from hybridwatch.orchestration.bisect.posterior.exact import ProbeAnswer
from hybridwatch.scenarios.validation import closest

STARTS: Final = "starts"
"""Whether the engine comes up for the scenario; asked for like a metric."""
ALIVE: Final = "alive"
"""Whether it comes up and lives to the scenario's end; likewise."""
_DEAD: Final = {STARTS: {ProbeState.NOT_UP}, ALIVE: {ProbeState.NOT_UP, ProbeState.DIES}}
"""What counts as no."""


class ChangeDirection(Enum):
    """Which way the change went."""

    REGRESSION = "regression"
    FIX = "fix"


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """A change between the two ends of a list, without noise.

    Attributes:
        metric: A contract, ``starts`` or ``alive``.
        first: What the earlier end gave; 1 for yes and 0 for no.
        last: What the later end gave.
    """

    metric: str
    wanted: ChangeDirection
    first: float
    last: float

    def answer(self, outcome: ProbeOutcome) -> ProbeAnswer:
        """Say on which side of the change a measurement lies.

        A count need not be that of an end: between them the engine may break a rule more often or
        less. It is as good as the better end, or it is not.
        """
        value = find_value(outcome, self.metric)
        if value is None:
            return ProbeAnswer.SKIPPED
        is_good = value <= min(self.first, self.last)
        if is_of_life(self.metric):
            is_good = bool(value)
        return (
            ProbeAnswer.CHANGED
            if is_good is (self.wanted is ChangeDirection.FIX)
            else ProbeAnswer.UNCHANGED
        )


def require_metric(metric: str) -> None:
    """Refuse what a search cannot look for.

    Raises:
        ComparisonError: No such metric, or one of answers, which a search does not measure.
    """
    if is_of_life(metric):
        return
    try:
        kind = find_metric(metric).kind
    except KeyError:
        raise ComparisonError(
            f"--metric: expected {STARTS}, {ALIVE} or the id of a metric, found {metric!r}; "
            f"{closest(metric, tuple(one.id for one in METRICS))}"
        ) from None
    if kind is Kind.PROPORTION:
        raise ComparisonError(
            f"--metric: expected a contract, a time, a rate, {STARTS} or {ALIVE}, found {metric}: "
            "contract.wrong_answers counts wrong answers one by one"
        )


def is_exact(metric: str) -> bool:
    """Whether one measurement decides, without noise."""
    return is_of_life(metric) or find_metric(metric).kind is Kind.EXACT


def is_of_life(metric: str) -> bool:
    """Whether it is asked of the engine itself, and answered by yes or no."""
    return metric in _DEAD


def find_value(outcome: ProbeOutcome, metric: str) -> float | None:
    """Give what a measurement says of a metric; ``None`` when it says nothing."""
    if outcome.state is ProbeState.NOT_HAD:
        return None
    if is_of_life(metric):
        return float(outcome.state not in _DEAD[metric])
    return outcome.counts.get(metric)


def exact_question(
    first: ProbeOutcome,
    last: ProbeOutcome,
    wanted: ChangeDirection,
    metric: str,
    order: Sequence[str],
) -> ExactQuestion | None:
    """Find what changed between the ends.

    An empty ``metric`` is whatever changed that way. Contracts of ``order`` come before others.
    ``None`` comes when nothing changed that way.
    """
    for name in (metric,) if metric else _metrics(first.counts, last.counts, order):
        values = find_value(first, name), find_value(last, name)
        if None in values:
            continue
        old, new = (value or 0.0 for value in values)
        worse = new < old if is_of_life(name) else new > old
        if old != new and worse is (wanted is ChangeDirection.REGRESSION):
            return ExactQuestion(name, wanted, old, new)
    return None


def _metrics(
    first: Mapping[str, float], last: Mapping[str, float], order: Sequence[str]
) -> tuple[str, ...]:
    both = sorted(first.keys() & last.keys())
    return (
        *_DEAD,
        *(one for one in order if one in both),
        *(one for one in both if one not in order),
    )
