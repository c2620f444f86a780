"""A review of a change: the results of all its scenarios together, and what they left open.

"Inconclusive" alone alarms no one: it is what an honest test says of a change near the margin. But
where a slow-down many times the margin would have passed unseen, silence reads as "all is well".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from hybridwatch.analysis.cause import TYPICAL, Area, Cause, causes_in, find_area
from hybridwatch.analysis.detection import KnownBad, complaints_about
from hybridwatch.analysis.gate import GateResult, consequence, gate_all, list_names
from hybridwatch.analysis.growth import Growth
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import Kind, Metric

FAR: Final = 3.0
"""Times its margin beyond which a change must not stay unseen. Ten trials of a healthy machine see
one to two margins; at three (9 % of throughput) a release could slow down by what people open
issues about. Lower, and a single noisy metric would comment on every pull request."""

LEAST_MARGIN: Final = 0.03
"""Stands for the margin of metrics that have none, such as a count that should not change."""


@dataclass(frozen=True, slots=True)
class GatedComparison:
    """A comparison, where it stands, and what the gate does about it."""

    report: Report
    comparison: Comparison
    action: Action

    @property
    def is_bad(self) -> bool:
        """Whether the gate does anything about it."""
        return self.action is not Action.WATCH

    @property
    def is_better(self) -> bool:
        """Whether it is an improvement."""
        return self.comparison.verdict is Verdict.IMPROVEMENT

    @property
    def reach(self) -> float | None:
        """The smallest change that would have been seen; ``None`` where none would."""
        return self.comparison.minimum_detectable_effect


@dataclass(frozen=True, slots=True)
class Blindness:
    """What can stop a change and could not have seen one, the worst last, without reach at the end.

    ``of`` counts the timed or counted comparisons that can stop a change, the settled ones
    included.
    """

    spots: tuple[GatedComparison, ...]
    of: int

    @property
    def trials_needed(self) -> int | None:
        """Trials a side that would settle every blind spot; ``None`` where that is unknown."""
        needed = [spot.comparison.trials_needed for spot in self.spots]
        known = [number for number in needed if number is not None]
        return max(known) if known and len(known) == len(needed) else None


def find_blindness(reports: tuple[Report, ...], policy: Policy, beyond: float = FAR) -> Blindness:
    """Find the comparisons that can stop a change and see none of ``beyond`` times the margin."""
    stopping = [
        GatedComparison(report, comparison, Action.BLOCK)
        for report in reports
        for comparison in _stopping(report, policy)
    ]
    blind = [spot for spot in stopping if _is_blind(spot.comparison, beyond)]
    ordered = sorted(blind, key=lambda spot: (spot.reach is None, spot.reach or 0.0))
    return Blindness(tuple(ordered), len(stopping))


def _stopping(report: Report, policy: Policy) -> Iterator[Comparison]:
    for comparison in report.comparisons:
        blocks = policy.action_for(report.scenario.id, comparison.metric) is Action.BLOCK
        # A tail scatters by its nature; the typical request has to be settled.
        if blocks and comparison.statistic in TYPICAL and _is_repeated(comparison.metric):
            yield comparison


def _is_repeated(metric: Metric) -> bool:
    """Whether a quieter machine or more trials settle it.

    How many documents a task has is the scenario's choice. The host's own work takes microseconds,
    scatters by tens of per cent on every machine, and explains a step.
    """
    is_host = metric.kind is Kind.TIME and find_area(metric.id, Verdict.INCONCLUSIVE) is Area.HOST
    return metric.kind.has_noise and not is_host


def _is_blind(comparison: Comparison, beyond: float) -> bool:
    if comparison.verdict is not Verdict.INCONCLUSIVE:
        return False
    reach = comparison.minimum_detectable_effect
    if reach is None:
        # Without any spread nothing can be computed; sides that are all alike hide nothing.
        return comparison.effect != 0.0
    return reach > beyond * max(comparison.metric.margin, LEAST_MARGIN)


class Conclusion(Enum):
    """The status of a check, in GitHub's words."""

    SUCCESS = "success"
    """Whatever is gated is proven to be the same, or better."""
    NEUTRAL = "neutral"
    """The gate passes, but with warnings or open questions: not green."""
    FAILURE = "failure"
    """The gate fails."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A scenario that should have been judged and could not be.

    ``scenario`` is its id, or the name of a file without one; empty for a whole testbed. ``reason``
    says why, and what to do, in one line. ``testbed`` is empty where none in particular did not
    measure it. ``started_at``, with a time zone, is of the newest run, which counts no more.
    """

    scenario: str
    reason: str
    testbed: str = ""
    started_at: datetime | None = None
    run_id: str = ""

    @property
    def place(self) -> str:
        """What is absent, and where."""
        if not self.scenario:
            return f"testbed {self.testbed}"
        return f"{self.scenario} on {self.testbed}" if self.testbed else self.scenario


@dataclass(frozen=True, slots=True)
class Found:
    """A cause, and where it was found; ``place`` is what the report is called among the others."""

    report: Report
    cause: Cause
    place: str


@dataclass(frozen=True, slots=True)
class ChangeReview:
    """Reports on one change, one per scenario, testbed and pair of builds.

    Attributes:
        absent: What was not, and had to be.
        controls: Known-bad controls, red on purpose: what they show is whether the suite sees.
        left_out: What was not judged and stops nothing, though it is not to be taken for green.
        now: When it was judged, with a time zone; ``None`` where no one needs ages.
        grown: What takes more of the engine's time, by the contender's run, where it was sampled.
        searched: What searches said of alerts, a line each, by a contender's run that showed them.
    """

    reports: tuple[Report, ...]
    absent: tuple[Absent, ...] = ()
    policy: Policy = field(default=STRICT)
    controls: tuple[KnownBad, ...] = ()
    left_out: tuple[Absent, ...] = ()
    now: datetime | None = None
    grown: Mapping[str, tuple[Growth, ...]] = field(default_factory=dict)
    searched: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def gate(self) -> GateResult:
        """Whether the change may go on."""
        stops = [f"{one.place}: {one.reason}" for one in self.absent]
        stops += (line for control in self.controls for line in complaints_about(control))
        left_out = [f"{one.place}: {one.reason}" for one in self.left_out]
        if self.only_controls:
            return GateResult(not stops, tuple(stops), tuple(left_out))
        return gate_all(self.reports, self.policy, stops, left_out, names=self.names)

    @property
    def only_controls(self) -> bool:
        """Whether there is nothing else: then only the suite was tried, and no build."""
        return bool(self.controls) and not self.reports and not self.absent

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each report, in order: its scenario, and what distinguishes it."""
        return list_names(self.reports, {one.testbed for one in self.absent if one.testbed})

    def name_of(self, report: Report) -> str:
        """What one of the reports is called."""
        found = zip(self.reports, self.names, strict=True)
        return next((name for one, name in found if one is report), report.scenario.id)

    def compute_age(self, report: Report) -> timedelta | None:
        """How long before it was judged the contender's run began; ``None`` if unknown."""
        started = report.contender.started_at
        return None if self.now is None or started is None else self.now - started

    @property
    def gated(self) -> tuple[GatedComparison, ...]:
        """Every comparison that the policy does not merely watch, in the order of the reports."""
        return tuple(
            GatedComparison(report, comparison, action)
            for report in self.reports
            for comparison in report.comparisons
            if (action := consequence(comparison, report, self.policy)) is not Action.WATCH
            or self.policy.action_for(report.scenario.id, comparison.metric) is not Action.WATCH
        )

    @property
    def causes(self) -> tuple[Found, ...]:
        """What changed, in the order of the reports, of each the most severe first."""
        return tuple(
            Found(report, cause, place)
            for report, place in zip(self.reports, self.names, strict=True)
            for cause in causes_in(report, self.policy)
        )

    @property
    def blindness(self) -> Blindness:
        """What could not have been seen of that which can stop a change."""
        return find_blindness(self.reports, self.policy)

    @property
    def incomparable(self) -> tuple[Report, ...]:
        """The reports in which nothing could be held against anything."""
        return tuple(
            report
            for report in self.reports
            if all(c.verdict is Verdict.NOT_COMPARABLE for c in report.comparisons)
        )

    @property
    def has_news(self) -> bool:
        """Whether there is anything that people should be notified of."""
        result = self.gate
        better = any(one.is_better for one in self.gated)
        return bool(result.reasons or result.warnings or self.blindness.spots) or better

    @property
    def conclusion(self) -> Conclusion:
        """Say it in one word; green means proven equal or better."""
        result = self.gate
        if not result.passed:
            return Conclusion.FAILURE
        if result.warnings or not all(one.comparison.verdict.is_good_news for one in self.gated):
            return Conclusion.NEUTRAL
        return Conclusion.SUCCESS
