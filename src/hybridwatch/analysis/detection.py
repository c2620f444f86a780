"""Detection: was the bug of a known-bad control caught, and was the healthy engine clean?

The bug is *caught* when a broken contract or lost answers distinguish its engine from the healthy
one; times differ by chance. The healthy engine is *clean* when it broke no contract and got as many
answers right as its scenario expects. ``hybridwatch controls`` is stricter: it measures again and
wants the contract broken under every seed.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import Kind, find_metric
from hybridwatch.records.identity import Role, lost_fixes
from hybridwatch.scenarios.scenario import Scenario

_UNSETTLED: Final = frozenset({Verdict.NOT_COMPARABLE, Verdict.MISSING})
"""Verdicts that show nothing of an engine that lived."""


class Detection(Enum):
    """What a known-bad control showed of its scenario."""

    MISSED = "not caught"
    """The engine without its fix passed: this scenario is green whatever happens."""
    CAUGHT = "caught"
    NOT_ASKED = "not asked"
    """The run holds neither contracts nor answers that could be compared."""


@dataclass(frozen=True, slots=True)
class ControlReading:
    """One comparison of a control, with the centers of both engines in base units; or NaN."""

    metric: str
    statistic: str
    verdict: Verdict
    old: float
    new: float

    @property
    def is_deterministic(self) -> bool:
        """Whether it is free of a machine's noise: a contract or answers."""
        return is_deterministic(self.metric)


@dataclass(frozen=True, slots=True)
class DetectionPromise:
    """What a scenario says of its two engines.

    ``deadly`` is whether the fault ends the engine, so that its contract trials must fail.
    ``at_least`` has each metric with the least that a healthy engine has.
    """

    deadly: bool = False
    at_least: tuple[tuple[str, float], ...] = ()


NOTHING: Final = DetectionPromise()
"""Of a scenario that is not known."""


def find_promise(scenario: Scenario) -> DetectionPromise:
    """Read off a scenario what its controls are held to."""
    return DetectionPromise(scenario.harm == "death", tuple(scenario.expect.at_least.items()))


@dataclass(frozen=True, slots=True)
class KnownBad:
    """A known-bad control, and what it showed.

    ``lost`` are the fixes that the contender lacks on purpose, ``by`` the comparisons that caught
    it, contracts first, and ``baseline_violations`` what the healthy engine was not clean of.
    """

    report: Report
    lost: tuple[str, ...]
    detection: Detection
    by: tuple[Comparison, ...]
    baseline_violations: tuple[str, ...]

    @property
    def scenario(self) -> str:
        """Id of the scenario."""
        return self.report.scenario.id

    @property
    def ok(self) -> bool:
        """Whether the bug was caught, and nothing where there is none."""
        return self.detection is Detection.CAUGHT and not self.baseline_violations


@lru_cache(maxsize=1024)
def kind_of(metric: str) -> Kind | None:
    """Give the kind of a metric; ``None`` of one that this hybridwatch does not know."""
    try:
        return find_metric(metric).kind
    except KeyError:
        return None


def is_deterministic(metric: str) -> bool:
    """Whether a metric is free of a machine's noise: a contract or answers."""
    kind = kind_of(metric)
    return kind is not None and not kind.has_noise


def find_detection(deterministic: Collection[Verdict], *, deadly: bool) -> Detection:
    """Say what a control showed, by verdicts on deterministic metrics; ``deadly`` as promised."""
    if _giving_away(deadly=deadly) & set(deterministic):
        return Detection.CAUGHT
    return Detection.MISSED if set(deterministic) - _UNSETTLED else Detection.NOT_ASKED


def baseline_violations_in(
    readings: Collection[ControlReading], promise: DetectionPromise
) -> tuple[str, ...]:
    """Name what the healthy engine was not clean of; it has 0 of each contract, promised or not."""
    return tuple(one.metric for one in readings if _is_violation(one, dict(promise.at_least)))


def is_control(report: Report) -> bool:
    """Whether a report is of a known-bad control of its own scenario.

    That takes one run, one code and a fix that was switched: an engine that lost its fix in any
    other way, or one that the scenario does not guard, is the worst of news.
    """
    old, new = report.baseline, report.contender
    return (
        report.role is Role.KNOWN_BAD
        and old.build.wheel_digest == new.build.wheel_digest
        and report.scenario.fix in lost_fixes(old.build.fixes, new.build.fixes)
    )


def find_known_bad(report: Report, promise: DetectionPromise = NOTHING) -> KnownBad:
    """Say what the report of a known-bad control showed, its scenario having promised that."""
    pairs = [(_reading(comparison), comparison) for comparison in report.comparisons]
    readings = [reading for reading, _ in pairs]
    bad = _giving_away(deadly=promise.deadly)
    return KnownBad(
        report=report,
        lost=lost_fixes(report.baseline.build.fixes, report.contender.build.fixes),
        detection=find_detection(
            [one.verdict for one in readings if one.is_deterministic], deadly=promise.deadly
        ),
        by=tuple(found for one, found in pairs if one.is_deterministic and one.verdict in bad),
        baseline_violations=baseline_violations_in(readings, promise),
    )


def complaints_about(control: KnownBad) -> Iterator[str]:
    """Say what is wrong with a control, a line each; nothing when it did what it must."""
    if control.detection is not Detection.CAUGHT:
        yield f"{control.scenario}: the bug was {control.detection.value}"
    for metric in control.baseline_violations:
        yield f"{control.scenario}: the healthy engine is not clean: {metric}"


def _giving_away(*, deadly: bool) -> frozenset[Verdict]:
    return frozenset({Verdict.REGRESSION, *([Verdict.FAILED] if deadly else [])})


def _is_violation(reading: ControlReading, at_least: Mapping[str, float]) -> bool:
    if math.isnan(reading.old):
        return reading.is_deterministic and reading.verdict is Verdict.FAILED
    if kind_of(reading.metric) is Kind.EXACT:
        return reading.old != 0
    return reading.old < at_least.get(reading.metric, -math.inf)


def _reading(comparison: Comparison) -> ControlReading:
    sides = comparison.baseline, comparison.contender
    old, new = (math.nan if one is None else one.center for one in sides)
    return ControlReading(comparison.metric.id, comparison.statistic, comparison.verdict, old, new)
