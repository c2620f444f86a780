"""What to read first: the one order of verdicts, and the worst one of a report."""

from collections.abc import Iterable
from typing import Final

from hybridwatch.analysis.verdict import Comparison, Report, Verdict

ORDER: Final = (
    Verdict.FAILED,
    Verdict.MISSING,
    Verdict.REGRESSION,
    Verdict.BROKEN,
    Verdict.NOT_COMPARABLE,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVEMENT,
    Verdict.EQUIVALENT,
)
"""The worst first, on every page and in every text. Of what gave no number nothing is known, and a
dead engine leaves no latency that could regress, so failed and missing stand above a regression.
Inconclusive stands above good news: it is never green."""


def find_line_verdict(report: Report) -> Verdict:
    """Give the worst verdict of a report; one without comparisons has nothing to say."""
    found = {comparison.verdict for comparison in report.comparisons}
    return next((verdict for verdict in ORDER if verdict in found), Verdict.MISSING)


def worst_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Order comparisons by severity, else as the report has them."""
    return sorted(comparisons, key=lambda comparison: ORDER.index(comparison.verdict))
