"""Words for the outcome of a comparison; the only types that views need to know.

``compare`` and ``report`` fill these; nothing here computes.
"""

from dataclasses import dataclass
from enum import Enum

from hybridwatch.metric import Metric
from hybridwatch.record.identity import EngineBuild, ScenarioRef, Testbed
from hybridwatch.record.run import Answer


class Verdict(Enum):
    """What a comparison says.

    Green means EQUIVALENT. "Nothing was significant" is INCONCLUSIVE and never green.
    """

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"
    MISSING = "missing"
    FAILED = "failed"

    @property
    def is_bad_news(self) -> bool:
        """Whether a gate must not pass over it in silence."""
        return self in {Verdict.REGRESSION, Verdict.MISSING, Verdict.FAILED}


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One side of one comparison.

    Attributes:
        center: The statistic over ``values``: the worst trial (exact), the median of the trials
            (times, rates, counts), the share of right answers (proportions); base units.
        values: One number per trial; for a proportion one 1.0 or 0.0 per document.
    """

    center: float
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        """How many trials (or documents) stand behind the center."""
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Flip:
    """A document that the two sides answered differently."""

    baseline: Answer
    contender: Answer


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric, one statistic, baseline against contender.

    Attributes:
        metric: What was measured.
        statistic: ``value`` (exact), ``median``, ``p99``, ``mean``: what each trial was reduced to.
        baseline: ``None`` when that side has no value.
        contender: ``None`` when that side has no value.
        effect: Relative change, contender / baseline - 1; an absolute difference for exact
            metrics and proportions; ``None`` when a side is missing or the baseline is 0.
        interval: Around ``effect``.
        p_value: Two-sided, before adjustment; ``None`` for exact metrics.
        p_adjusted: After the report's false-discovery control.
        equivalence_p: Of the two one-sided tests against the margin.
        minimum_detectable_effect: Smallest effect this many trials would find 8 times in 10.
        trials_needed: Trials (or documents) a side that would settle an inconclusive verdict.
        verdict: The answer.
        test: Name of the rule that gave ``p_value``.
        doubts: What a reader should hold against it, each with what to do about it.
        flips: Documents answered differently, proportions only.
    """

    metric: Metric
    statistic: str
    baseline: Summary | None
    contender: Summary | None
    effect: float | None
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    equivalence_p: float | None
    minimum_detectable_effect: float | None
    trials_needed: int | None
    verdict: Verdict
    test: str
    doubts: tuple[str, ...] = ()
    flips: tuple[Flip, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """Who stands on one side of a report."""

    run_id: str
    build: EngineBuild
    testbed: Testbed


@dataclass(frozen=True, slots=True)
class Report:
    """Every comparison between two sides of one scenario.

    Attributes:
        scenario: What was run.
        baseline: First side.
        contender: Second side.
        comparisons: In the order of the catalogue: contracts, accuracy, rates, times, counts.
        tests: How many p-values went through the false-discovery control together.
        false_discovery_rate: The level of that control.
        differences: What differs between the two sides besides the engine build's label, one
            line each, such as ``fix padded-rows-prefilling: present -> reverted``.
        failures: Reasons of failed trials, one line each.
    """

    scenario: ScenarioRef
    baseline: Side
    contender: Side
    comparisons: tuple[Comparison, ...]
    tests: int
    false_discovery_rate: float
    differences: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def bad_news(self) -> tuple[Comparison, ...]:
        """The comparisons a gate must not pass over."""
        return tuple(c for c in self.comparisons if c.verdict.is_bad_news)
