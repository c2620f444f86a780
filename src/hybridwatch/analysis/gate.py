"""From a report to pass or fail.

Strict on purpose: a metric that disappeared or failed is bad news like a regression, and a report
in which nothing could be compared must not pass as "no regression".

Careful on purpose, too: a gate stops people's work. A regression that survives the report's
false-discovery control, but not Holm's, is red in the report and a warning here.
"""

from dataclasses import dataclass

from hybridwatch.analysis.verdict import Comparison, Report, Verdict


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate says.

    Attributes:
        passed: Whether the contender may go on.
        reasons: Why not, one line each; empty if it passed.
        warnings: Bad news that was not sure enough to stop it, one line each.
    """

    passed: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def gate(report: Report) -> GateResult:
    """Let a report pass unless it brings bad news for sure or compares nothing."""
    sure = [c for c in report.bad_news if is_sure(c, report)]
    reasons = [_reason(comparison) for comparison in sure]
    warnings = [_warning(c) for c in report.bad_news if not is_sure(c, report)]
    if all(c.verdict is Verdict.NOT_COMPARABLE for c in report.comparisons):
        doubts = dict.fromkeys(doubt for c in report.comparisons for doubt in c.doubts)
        reasons.append(" ".join(["Nothing could be compared.", *doubts]))
    return GateResult(not reasons, tuple(reasons), tuple(warnings))


def is_sure(comparison: Comparison, report: Report) -> bool:
    """Say whether a verdict stands under Holm's control; one without a test always does."""
    return comparison.p_holm is None or comparison.p_holm < report.false_discovery_rate


def _reason(comparison: Comparison) -> str:
    return f"{comparison.metric.id} {comparison.statistic}: {comparison.verdict.value}"


def _warning(comparison: Comparison) -> str:
    return f"{_reason(comparison)}, but not under Holm's control (p {comparison.p_holm:.3f})"
