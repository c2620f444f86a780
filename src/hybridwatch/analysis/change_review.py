"""What was found out about a change in all of its scenarios together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from hybridwatch.analysis.blindness import Blindness, find_blindness
from hybridwatch.analysis.cause import Cause, causes_in
from hybridwatch.analysis.detection import KnownBad, complaints_about
from hybridwatch.analysis.gate import GateResult, consequence, gate_all
from hybridwatch.analysis.place import list_names
from hybridwatch.analysis.policy import STRICT, Action, Policy
from hybridwatch.analysis.verdict import Comparison, Report, Verdict


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

    Attributes:
        scenario: Its id, or the name of the file that did not tell; empty for a whole testbed.
        reason: Why, and what to do, one line.
        testbed: Id of the machine that did not measure it; empty where none in particular.
        started_at: When the newest run began that does not count any more, with a time zone.
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
class GatedComparison:
    """A comparison, and where it stands."""

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


@dataclass(frozen=True, slots=True)
class Found:
    """A cause, and where it was found.

    Attributes:
        place: What the report is called among the others.
    """

    report: Report
    cause: Cause
    place: str


@dataclass(frozen=True, slots=True)
class ChangeReview:
    """Reports on one change, one per scenario, testbed and pair of builds.

    Attributes:
        absent: What was not, and had to be.
        controls: Known-bad controls, which are red on purpose: what they show is whether the suite
            sees, and nothing about a build. None of them is among the reports.
        left_out: What was not judged and stops nothing, though it is not to be taken for green.
        now: When it was judged, with a time zone; ``None`` where ages are not asked for.
    """

    reports: tuple[Report, ...]
    absent: tuple[Absent, ...] = ()
    policy: Policy = field(default=STRICT)
    controls: tuple[KnownBad, ...] = ()
    left_out: tuple[Absent, ...] = ()
    now: datetime | None = None

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
        """What each report is called, in their order: its scenario, and what tells it apart."""
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
        return tuple(self._gated())

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
        """Whether there is anything that people should hear of without asking."""
        result = self.gate
        better = any(one.is_better for one in self.gated)
        return bool(result.reasons or result.warnings or self.blindness.spots) or better

    @property
    def conclusion(self) -> Conclusion:
        """Say it in one word; green means proven equal or better."""
        result = self.gate
        if not result.passed:
            return Conclusion.FAILURE
        green = {Verdict.EQUIVALENT, Verdict.IMPROVEMENT}
        if result.warnings or any(one.comparison.verdict not in green for one in self.gated):
            return Conclusion.NEUTRAL
        return Conclusion.SUCCESS

    def _gated(self) -> Iterator[GatedComparison]:
        for report in self.reports:
            for comparison in report.comparisons:
                action = consequence(comparison, report, self.policy)
                wanted = self.policy.action_for(report.scenario.id, comparison.metric)
                if {action, wanted} != {Action.WATCH}:
                    yield GatedComparison(report, comparison, action)
