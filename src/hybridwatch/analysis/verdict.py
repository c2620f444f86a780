"""The outcome of a comparison, two curves included; the only types that reports and pages know.

``compare`` and ``report`` fill these; nothing here computes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import Field, WithJsonSchema

from hybridwatch.metrics import Metric
from hybridwatch.records.identity import EngineBuild, Role, ScenarioRef, Testbed
from hybridwatch.records.run import Answer, Clock, InterimAnalyses, Phase

_REPEATS: Final = 3
"""Trials a side from which on a count is taken to repeat."""


class Verdict(Enum):
    """What a comparison says.

    Green means EQUIVALENT. "Nothing was significant" is INCONCLUSIVE and never green; nor is what
    is known to be worse, however little.
    """

    REGRESSION = "regression"
    BROKEN = "broken"
    """The contender breaks what its scenario expects, and that is no regression: the baseline
    breaks it too, or lies too near to tell. Neither equal nor better makes it right."""
    WORSE_WITHIN = "worse within margin"
    """Worse beyond noise, and shown to be so by less than the margin: known, and allowed."""
    IMPROVEMENT = "improvement"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"
    MISSING = "missing"
    FAILED = "failed"

    @property
    def is_bad_news(self) -> bool:
        """Whether a gate must not pass over it in silence."""
        return self in {Verdict.REGRESSION, Verdict.BROKEN, Verdict.MISSING, Verdict.FAILED}

    @property
    def is_good_news(self) -> bool:
        """Whether the contender is shown to be as good as the baseline, or better."""
        return self in {Verdict.EQUIVALENT, Verdict.IMPROVEMENT}

    @property
    def is_measured(self) -> bool:
        """Whether both sides gave numbers that may be compared."""
        return self not in {Verdict.FAILED, Verdict.MISSING, Verdict.NOT_COMPARABLE}


ORDER: Final = (
    Verdict.FAILED,
    Verdict.MISSING,
    Verdict.REGRESSION,
    Verdict.BROKEN,
    Verdict.NOT_COMPARABLE,
    Verdict.WORSE_WITHIN,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVEMENT,
    Verdict.EQUIVALENT,
)
"""The worst first, on every page and in every text. Of what gave no number nothing is known, and a
dead engine leaves no latency that could regress, so failed and missing stand above a regression.
What is not comparable may hide any change, and what is worse within the margin at most that one.
Inconclusive stands above good news: it is never green."""


class Design(Enum):
    """Which numbers of the two sides were held against each other."""

    EXACT = "exact"
    """Counts without noise."""
    PAIRED = "paired"
    """Block by block, or question by question."""
    UNPAIRED = "unpaired"
    """All trials of a side against all of the other."""
    INTERVALS = "intervals"
    """The medians of which each side kept an interval and no samples."""
    NONE = "none"
    """None: nothing was tested."""


BY_START: Final = "sign-flip of starts"
"""``Comparison.test`` where starts of the engines are flipped, and not blocks."""


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

    @property
    def repeats(self) -> bool:
        """Whether all trials gave one number, and enough of them: two may agree by luck."""
        return self.n >= _REPEATS and len(set(self.values)) == 1


@dataclass(frozen=True, slots=True)
class Flip:
    """A document that the two sides answered differently."""

    baseline: Answer
    contender: Answer


@dataclass(frozen=True, slots=True)
class TokenChange:
    """A request that two sides answer with different tokens; ``docs/json.md`` has the fields.

    A token is ``None`` where its side's answer is at its end, a logprob where the engine kept it to
    itself, a gap where it is not known to be near.
    """

    trial: int
    request: int
    position: int
    baseline: int | None
    contender: int | None
    baseline_logprob: float | None
    contender_logprob: float | None
    baseline_gap: float | None
    contender_gap: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric, one statistic, baseline against contender; ``docs/json.md`` explains the fields.

    Attributes:
        effect: ``None`` when a side is missing or the baseline is 0.
        p_value: Before adjustment; of accuracy and within blocks one-sided in the direction seen,
            else two-sided; ``None`` for exact metrics.
        noise: Where stored runs report it and sides of two runs are compared.
        doubts: What a reader should hold against it, each with what to do about it. The first of a
            broken one says what is expected and what was found.
        ratios: Logarithm of contender / baseline of each block, where sides are compared within
            blocks; of each start of the engines where these are tested (``BY_START``).
        of_unknown_runs: Whether a time, rate or count is compared between two runs, and it is not
            known how much runs of it differ; such a change is left open.
        restless: Whether it is a time or a rate that one run measured on a machine which that run
            calls noisy (``analysis/machine_state.py``).
        of_luck: Whether a regression is no more than chance gives from run to run
            (``analysis/noise.py``); such a change only warns.
    """

    metric: Metric
    statistic: str
    baseline: Summary | None
    contender: Summary | None
    effect: float | None
    interval: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    equivalence_p: float | None = None
    minimum_detectable_effect: float | None = None
    trials_needed: int | None = None
    verdict: Verdict = Verdict.INCONCLUSIVE
    test: str = "none"
    design: Design = Design.NONE
    assumption: str = ""
    pairs: int | None = None
    relevance: float = 0.0
    noise: float | None = None
    p_holm: float | None = None
    churn: float | None = None
    doubts: tuple[str, ...] = ()
    flips: tuple[Flip, ...] = ()
    family: str = ""
    ratios: tuple[float, ...] = ()
    of_unknown_runs: bool = False
    changes: tuple[TokenChange, ...] = ()
    restless: bool = False
    of_luck: bool = False


@dataclass(frozen=True, slots=True)
class Factor:
    """One of the quantities whose product is a metric, and what it did to the metric.

    ``acceptance_length`` is over every step of a request, one without drafts included. ``share`` is
    of the logarithmic change; negative when this factor worked against it.
    """

    name: str
    effect: float
    interval: Interval
    share: float

    @property
    def moved(self) -> bool:
        """Whether the change of this factor is beyond noise."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True, slots=True)
class Attribution:
    """Why a metric changed; ``effect`` is of its geometric mean: all factors multiplied."""

    metric: str
    effect: float
    factors: tuple[Factor, ...]

    @property
    def movers(self) -> tuple[Factor, ...]:
        """The factors that made the change, the largest share first; often none can be named."""
        found = [factor for factor in self.factors if factor.moved and factor.share > 0]
        return tuple(sorted(found, key=lambda factor: -factor.share))


@dataclass(frozen=True, slots=True)
class Side:
    """Who stands on one side of a report."""

    run_id: str
    build: EngineBuild
    testbed: Testbed
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Tests that were adjusted together."""

    name: str
    tests: int


@dataclass(frozen=True, slots=True)
class FailedTrial:
    """A trial that gave no values: why, in one line, and the last lines of the engine's log."""

    side: str
    phase: Phase
    index: int
    reason: str
    log_tail: str
    engine_died: bool

    @property
    def place(self) -> str:
        """Where it stands in its run: ``contender, contract trial 3``."""
        return f"{self.side}, {self.phase.value} trial {self.index}"


Better = Literal["baseline", "contender"]


@dataclass(frozen=True, slots=True)
class Spread:
    """A number of each trial: the median, and the middle four fifths of them."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What a side gave under one load, over its trials; units are those of ``docs/json.md``.

    ``load`` counts requests in flight, or that arrive per second. ``goodput`` is ``None`` without
    an objective, ``joules_per_token`` where no driver counts energy.
    """

    load: Annotated[int | float, WithJsonSchema({"type": "number"})]
    interactivity: Spread
    throughput: Spread
    goodput: Spread | None
    joules_per_token: Spread | None


@dataclass(frozen=True, slots=True)
class SideCurve:
    """The curve of a side, from the lowest load to the highest; as in ``docs/json.md``.

    ``gpus`` is 0 on a CPU. ``slo`` has the largest seconds of a request that counts as goodput.
    ``clock`` is whose seconds the rates count.
    """

    build: str
    knob: str
    gpus: int
    slo: Mapping[str, float]
    trials: int
    points: tuple[LoadPoint, ...]
    # Left out of JSON: verdicts stored before there was another are to be had again to the letter.
    clock: Annotated[Clock, Field(exclude_if=lambda clock: clock == "wall")] = "wall"

    @property
    def best_goodput(self) -> LoadPoint | None:
        """The load under which the most requests keep the objective; ``None`` without one."""
        stated = [(one, one.goodput.middle) for one in self.points if one.goodput is not None]
        best = max(stated, key=lambda found: found[1], default=None)
        return None if best is None else best[0]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Interactivities, tokens per second, at which one side gives more throughput beyond noise."""

    better: Better
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """Two curves next to each other.

    ``common`` is the lowest and highest interactivity that the median points of both sides reached,
    if there is such a range. ``stretches`` begin at the lowest.
    """

    baseline: SideCurve
    contender: SideCurve
    common: tuple[float, float] | None
    stretches: tuple[Stretch, ...] = ()

    @property
    def crossings(self) -> tuple[tuple[float, float], ...]:
        """The gaps between stretches of which one side is better each."""
        return tuple(
            (before.high, after.low)
            for before, after in pairwise(self.stretches)
            if before.better != after.better
        )


@dataclass(frozen=True, slots=True)
class Report:
    """Every comparison between two sides of one scenario; ``docs/json.md`` explains the fields.

    ``attribution`` is ``None`` when the output throughput is not said to have changed, or when the
    trials have no count of engine steps. ``role`` is of the run; between two a comparison.
    """

    scenario: ScenarioRef
    baseline: Side
    contender: Side
    comparisons: tuple[Comparison, ...]
    tests: int
    false_discovery_rate: float
    differences: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    attribution: Attribution | None = None
    looks: InterimAnalyses | None = None
    failed_trials: tuple[FailedTrial, ...] = ()
    families: tuple[Family, ...] = ()
    tradeoff: Tradeoff | None = None
    role: Role = Role.COMPARISON

    @property
    def bad_news(self) -> tuple[Comparison, ...]:
        """The comparisons a gate must not pass over."""
        return tuple(c for c in self.comparisons if c.verdict.is_bad_news)


def find_line_verdict(report: Report) -> Verdict:
    """Give the worst verdict of a report; one without comparisons has nothing to say."""
    found = {comparison.verdict for comparison in report.comparisons}
    return next((verdict for verdict in ORDER if verdict in found), Verdict.MISSING)


def worst_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Order comparisons by severity, else as the report has them."""
    return sorted(comparisons, key=lambda comparison: ORDER.index(comparison.verdict))
