from dataclasses import replace

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.report import report_between, report_of
from tests.builders import a_run, noisy

PADDED = "contract.padded_rows_prefilling"


def test_bad_news_fails_with_its_reason() -> None:
    result = gate(report_of(a_run({PADDED: (0.0,), "ttft": (1.0,)}, {PADDED: (1.0,)})))
    assert not result.passed
    assert result.reasons == (
        f"{PADDED} value: regression",
        "ttft median: missing",
        "ttft p99: missing",
    )


def test_equivalent_and_inconclusive_pass() -> None:
    side = {PADDED: (0.0,), "tpot": noisy(1.0, 2)}
    result = gate(report_of(a_run(side, side)))
    assert result.passed
    assert result.reasons == ()


def test_nothing_compared_does_not_pass() -> None:
    left = a_run({PADDED: (0.0,)})
    right = replace(left, testbed=replace(left.testbed, id="other"))
    result = gate(report_between(left, 0, right, 0))
    assert not result.passed
    assert result.reasons[0].startswith("Nothing could be compared. Testbed differs")
    assert not gate(report_of(a_run({}, {}))).passed
