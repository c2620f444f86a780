"""The type of a metric: what a number means before anybody compares it."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Unit(Enum):
    """Base units; nothing inside hybridwatch is stored in anything else."""

    SECONDS = "s"
    TOKENS_PER_SECOND = "tok/s"
    REQUESTS_PER_SECOND = "req/s"
    STEPS_PER_SECOND = "step/s"
    BYTES = "bytes"
    COUNT = "count"
    RATIO = "1"


class Direction(Enum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"

    def is_worse(self, change: float) -> bool:
        """Whether a change goes the bad way, given new minus old, or their ratio less 1."""
        return (change > 0) is (self is Direction.LOWER)

    @property
    def worse(self) -> float:
        """The sign of a change that goes the bad way: 1 or -1."""
        return 1.0 if self is Direction.LOWER else -1.0


class Kind(Enum):
    """What is assumed about the values, and so which test compares them.

    The idea that the unit's nature chooses the test is benchstat's (golang/perf, ``benchmath``).
    """

    EXACT = "exact"
    """Free of noise: one trial a side is enough and any difference counts."""
    COUNT = "count"
    """A whole number of events per unit of work; repeatable, but the work itself may vary."""
    TIME = "time"
    RATE = "rate"
    PROPORTION = "proportion"
    """Right answers out of all questions; compared question by question."""

    @property
    def has_noise(self) -> bool:
        """Whether the machine and the moment move the values, so that a change is a ratio.

        Contracts and answers are the engine's alone: a change of theirs is a difference.
        """
        return self not in {Kind.EXACT, Kind.PROPORTION}

    @property
    def can_be_expected(self) -> bool:
        """Whether equal work gives an equal value, so that a scenario can name it beforehand."""
        return self in {Kind.EXACT, Kind.COUNT}

    @property
    def rank(self) -> int:
        """Place in a report: what must hold, then right answers, then how fast they come."""
        return (Kind.EXACT, Kind.PROPORTION, Kind.RATE, Kind.TIME, Kind.COUNT).index(self)

    @property
    def statistic(self) -> str:
        """By what the values of one trial become one number; a time may have a tail besides."""
        if self is Kind.EXACT:
            return "value"
        return "mean" if self in {Kind.PROPORTION, Kind.COUNT} else "median"

    @property
    def sample(self) -> str:
        """Of what more would settle a question.

        A question that is asked again is answered as before, so more trials do not help answers.
        """
        return "document" if self is Kind.PROPORTION else "trial"

    @property
    def change_unit(self) -> str:
        """In what the size of a change is written, of a hundredth each."""
        return "points" if self is Kind.PROPORTION else "%"


_OF_TOKENS: Final = ("acceptance_length", "acceptance_rate")
"""Rates per step or per draft: no clock is in them."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity.

    Attributes:
        id: vLLM's own word where there is one (``ttft``); families as ``family.member``.
        unit: The base unit of every stored value.
        kind: Chooses the statistical test.
        margin: Half-width of the equivalence band as a fraction of the baseline (``0.05`` is 5 %);
            for proportions an absolute difference; 0 for exact metrics.
        doc: One sentence: what a value is and how it comes about.
        relevance: What a change must exceed to matter; ``None`` where that is the margin.
    """

    id: str
    unit: Unit
    better: Direction
    kind: Kind
    margin: float
    doc: str
    relevance: float | None = None

    @property
    def bound(self) -> float:
        """What a change must exceed to matter."""
        return self.margin if self.relevance is None else self.relevance

    @property
    def hangs_on_the_clock(self) -> bool:
        """Whether a noisy machine makes it uncertain: a time, or a rate per time."""
        family = self.id.partition(".")[0]
        return self.kind in {Kind.TIME, Kind.RATE} and family not in _OF_TOKENS

    def label(self, statistic: str) -> str:
        """Name the metric as compared by a statistic, which only a time can have several of."""
        return f"{self.id} {statistic}" if self.kind is Kind.TIME else self.id
