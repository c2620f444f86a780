"""From a report to pass or fail.

Strict on purpose: a metric that disappeared or failed is bad news like a regression, and a report
in which nothing could be compared must not pass as "no regression".
"""

from dataclasses import dataclass

from hybridwatch.analysis.verdict import Comparison, Report, Verdict


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate says.

    Attributes:
        passed: Whether the contender may go on.
        reasons: Why not, one line each; empty if it passed.
    """

    passed: bool
    reasons: tuple[str, ...]


def gate(report: Report) -> GateResult:
    """Let a report pass unless it brings bad news or compares nothing."""
    reasons = [_reason(comparison) for comparison in report.bad_news]
    if all(c.verdict is Verdict.NOT_COMPARABLE for c in report.comparisons):
        doubts = dict.fromkeys(doubt for c in report.comparisons for doubt in c.doubts)
        reasons.append(" ".join(["Nothing could be compared.", *doubts]))
    return GateResult(not reasons, tuple(reasons))


def _reason(comparison: Comparison) -> str:
    return f"{comparison.metric.id} {comparison.statistic}: {comparison.verdict.value}"
