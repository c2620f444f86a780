"""What a reader acts on: a cause, and the metrics that show it.

An engine that dies takes every metric with it, and one that slows down moves the throughput and all
latencies at once. Each of these is one thing to look into.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from hybridwatch.analysis.detection import kind_of
from hybridwatch.analysis.gate import consequence
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.subject import HOST_METRICS, MEMORY_SUBJECTS
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import START_METRICS, Kind


class Area(Enum):
    """What is affected, the most severe first; the values are stored by what people decide."""

    ENGINE = "engine"
    """It died or hung, or its trials failed in another way."""
    ANSWERS = "answers"
    """Answers were lost or won."""
    CONTRACT = "contract"
    """Rules of the engine's state were broken, or hold again."""
    MEASUREMENT = "measurement"
    """A value that should be there is not."""
    SPEED = "speed"
    """Throughput, latencies and the acceptance of drafts."""
    HOST = "host"
    """What the host does in a step, and how often it waits for the device."""
    START = "start"
    """How long the engine takes to come up."""
    MEMORY = "memory"
    """What the engine's processes hold, what fits into its cache, and what a request takes."""
    OTHER = "other"
    """Metrics of other tools, of which only the direction is known."""


_SEVERITY: Final = {area: place for place, area in enumerate(Area)}
_ACTIONS: Final = {Action.BLOCK: 0, Action.WARN: 1, Action.WATCH: 2}
_FELT: Final = frozenset({"ttft", "tpot", "output_throughput"})
"""What users of an engine notice first: the wait, the flow, and what the operator pays for."""
TYPICAL: Final = frozenset({"median", "value", "mean"})
"""Statistics that speak of the typical request; a tail explains, and leads only alone."""


@dataclass(frozen=True, slots=True)
class CausePart:
    """One verdict of a cause; its effect is relative, or a difference without noise."""

    metric: str
    statistic: str
    verdict: Verdict
    effect: float | None
    action: Action
    comparison: Comparison | None = None

    @property
    def is_better(self) -> bool:
        """Whether it is an improvement."""
        return self.verdict is Verdict.IMPROVEMENT

    @property
    def is_within(self) -> bool:
        """Whether it got worse by less than the margin."""
        return self.verdict is Verdict.WORSE_WITHIN


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that changed between two sides; ``parts``, never empty, has what to name first."""

    area: Area
    is_better: bool
    parts: tuple[CausePart, ...]

    @property
    def lead(self) -> CausePart:
        """The metric to name: what the gate acts on, then what users feel, then the largest."""
        return self.parts[0]

    @property
    def action(self) -> Action:
        """The strictest action of its parts."""
        return min((part.action for part in self.parts), key=_ACTIONS.__getitem__)


@lru_cache(maxsize=4096)  # for every verdict of a store, of few metrics
def find_area(metric: str, verdict: Verdict) -> Area:
    """Say what a verdict is about; failed trials are the engine's, unknown metrics other tools'."""
    if verdict is Verdict.FAILED:
        return Area.ENGINE
    if verdict is Verdict.MISSING:
        return Area.MEASUREMENT
    if metric in HOST_METRICS:
        return Area.HOST
    if metric in START_METRICS:
        return Area.START
    if metric in MEMORY_SUBJECTS:
        return Area.MEMORY
    kind = kind_of(metric)
    if kind is None or metric.startswith("asv_"):
        return Area.OTHER
    return {Kind.EXACT: Area.CONTRACT, Kind.PROPORTION: Area.ANSWERS}.get(kind, Area.SPEED)


def causes_in(report: Report, policy: Policy = STRICT) -> tuple[Cause, ...]:
    """Find what changed, as ``find_causes``; what the policy only watches is left out."""
    return find_causes(
        CausePart(c.metric.id, c.statistic, c.verdict, c.effect, action, c)
        for c in report.comparisons
        if _matters(c, action := consequence(c, report, policy), report, policy)
    )


def _matters(comparison: Comparison, action: Action, report: Report, policy: Policy) -> bool:
    if comparison.verdict is Verdict.IMPROVEMENT:
        return policy.action_for(report.scenario.id, comparison.metric) is not Action.WATCH
    return action is not Action.WATCH


def find_causes(parts: Iterable[CausePart]) -> tuple[Cause, ...]:
    """Put together what has one cause.

    Parts are bad verdicts, improvements and what is worse within the margin between the same two
    sides; others are no change. What got worse comes before what got better; within these the most
    severe area first.
    """
    groups: defaultdict[tuple[bool, Area], list[CausePart]] = defaultdict(list)
    for part in parts:
        if part.is_better or part.verdict.is_bad_news or part.is_within:
            groups[part.is_better, find_area(part.metric, part.verdict)].append(part)
    causes = [
        Cause(area, is_better, tuple(sorted(found, key=_prominence)))
        for (is_better, area), found in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (cause.is_better, _SEVERITY[cause.area])))


def _prominence(part: CausePart) -> tuple[int, bool, bool, bool, float]:
    # A tail, and the drafts at one position, explain what the whole metric says.
    explains = part.statistic not in TYPICAL or part.metric.startswith("acceptance_rate.")
    felt = part.metric in _FELT
    return _ACTIONS[part.action], part.is_within, not felt, explains, -_size(part)


def _size(part: CausePart) -> float:
    """How large a change is; halved and doubled are alike."""
    if part.effect is None:
        return 0.0
    other = find_area(part.metric, part.verdict) is Area.OTHER
    kind = None if other else kind_of(part.metric)
    if (kind is not None and not kind.has_noise) or part.effect <= -1.0:
        return abs(part.effect)
    return abs(math.log1p(part.effect))
