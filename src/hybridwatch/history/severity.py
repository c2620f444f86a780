"""What to read first: the order of verdicts, and the worst one of a report."""

from collections.abc import Iterable
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Report, Verdict

SEVERITY: Final = (
    Verdict.REGRESSION,
    Verdict.FAILED,
    Verdict.MISSING,
    Verdict.NOT_COMPARABLE,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVEMENT,
    Verdict.EQUIVALENT,
)
"""What to read first. Inconclusive stands above good news: it is never green."""


def verdict_of(report: Report) -> Verdict:
    """Give the worst verdict of a report; one without comparisons has nothing to say."""
    found = {comparison.verdict for comparison in report.comparisons}
    return next((verdict for verdict in SEVERITY if verdict in found), Verdict.MISSING)


def worst_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Order comparisons by severity, else as the report has them."""
    return sorted(comparisons, key=lambda comparison: SEVERITY.index(comparison.verdict))
