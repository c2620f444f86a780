"""A trace that was replayed too late: no silent lie."""

import pytest

from hybridwatch.analysis.report import build_report
from tests.builders import a_comparison, noisy

TIMES = {"ttft": noisy(0.1, 10)}


def doubts(old: float, new: float) -> list[str]:
    """What is doubted of two sides whose requests were so many seconds late."""
    sides = ({**TIMES, "send_lateness": (late,) * 10} for late in (old, new))
    found, _ = build_report(a_comparison(*sides)).comparisons  # the median, and the 99th percentile
    return [doubt for doubt in found.doubts if "later than the trace says" in doubt]


@pytest.mark.parametrize(
    ("old", "new", "names"), [(0.02, 0.001, "baseline"), (0, 0.006, "contender")]
)
def test_a_side_whose_requests_were_late_is_doubted(old, new, names):
    (doubt,) = doubts(old, new)
    assert (
        f"Half of the {names}'s requests were sent more than {1000 * max(old, new):.0f} ms" in doubt
    )


def test_a_trace_in_time_is_not_doubted_and_lateness_gets_no_verdict():
    assert doubts(0.004, 0.005) == []
