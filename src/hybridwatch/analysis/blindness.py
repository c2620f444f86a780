"""Where a measurement could not have seen what it was made for.

"Inconclusive" alone is nothing to alarm people with: it is what an honest test says of a change
near the margin, or of a few trials too few. It is another matter when a slow-down many times the
margin would have passed unseen: then the machine was too noisy, or the trials too few, to say
anything, and silence would read as "all is well".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hybridwatch.analysis.cause import TYPICAL, Area, find_area
from hybridwatch.analysis.policy import Action, Policy
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.metrics import Kind, Metric

FAR: Final = 3.0
"""Times its margin beyond which a change must not stay unseen. Ten trials of a healthy machine see
one to two margins; at three (9 % of throughput) a release could slow down by what people open
issues about. Lower, and a single noisy metric would comment on every pull request."""

LEAST_MARGIN: Final = 0.03
"""Stands for the margin of metrics that have none, such as a count that should not change."""


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """A comparison that can stop a change and could not have seen one."""

    report: Report
    comparison: Comparison

    @property
    def reach(self) -> float | None:
        """The smallest change that would have been seen; ``None`` where none would."""
        return self.comparison.minimum_detectable_effect


@dataclass(frozen=True, slots=True)
class Blindness:
    """All blind spots of a change.

    Attributes:
        spots: The worst last; those that would have seen no change at all come at the very end.
        of: How many timed or counted comparisons can stop a change, the settled ones included.
    """

    spots: tuple[BlindSpot, ...]
    of: int

    @property
    def trials_needed(self) -> int | None:
        """Trials a side that would settle every blind spot; ``None`` where that is unknown."""
        needed = [spot.comparison.trials_needed for spot in self.spots]
        known = [number for number in needed if number is not None]
        return max(known) if known and len(known) == len(needed) else None


def find_blindness(reports: tuple[Report, ...], policy: Policy, beyond: float = FAR) -> Blindness:
    """Find what could not have been seen of all that can stop a change.

    A change may stay unseen up to ``beyond`` times its margin.
    """
    stopping = [
        BlindSpot(report, comparison)
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
    """Whether a quieter machine or more trials settle it, on a machine that is quiet enough.

    How many documents a task has is the scenario's choice, the same everywhere. The host's own
    work takes microseconds, scatters by tens of per cent on every machine, and explains a step.
    """
    if metric.kind is Kind.TIME and find_area(metric.id, Verdict.INCONCLUSIVE) is Area.HOST:
        return False
    return metric.kind.has_noise


def _is_blind(comparison: Comparison, beyond: float) -> bool:
    if comparison.verdict is not Verdict.INCONCLUSIVE:
        return False
    reach = comparison.minimum_detectable_effect
    if reach is None:
        # Without any spread nothing can be computed; sides that are all alike hide nothing.
        return comparison.effect != 0.0
    return reach > beyond * max(comparison.metric.margin, LEAST_MARGIN)
