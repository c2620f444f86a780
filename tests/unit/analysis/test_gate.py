from dataclasses import replace

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import report_between, report_of
from hybridwatch.analysis.verdict import Verdict
from tests.builders import a_run, noisy

PADDED = "contract.padded_rows_prefilling"
TASKS = ("accuracy.chain", "accuracy.lookup", "accuracy.recall")


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


def lost_a_little(tasks):
    """A run in which each task lost as many answers as p 0.03 tells."""
    right, wrong = "1" * 200, "0" * 5 + "1" * 195
    return a_run(dict.fromkeys(tasks, right), dict.fromkeys(tasks, wrong))


def test_what_only_the_report_is_sure_of_is_a_warning() -> None:
    """A gate without Holm's control would stop here: all are red in the report."""
    report = report_of(lost_a_little(TASKS))
    assert {c.verdict for c in report.comparisons} == {Verdict.REGRESSION}
    result = gate(report)
    assert result.passed
    assert result.reasons == ()
    assert [line.partition(" ")[0] for line in result.warnings] == sorted(TASKS)
    assert all("not under Holm's control" in line for line in result.warnings)


def test_the_same_change_alone_stops() -> None:
    result = gate(report_of(lost_a_little(TASKS[:1])))
    assert not result.passed
    assert result.warnings == ()


def test_a_contract_needs_no_control_to_stop() -> None:
    report = report_of(a_run({PADDED: (0.0,)}, {PADDED: (1.0,)}))
    assert report.comparisons[0].p_holm is None
    assert not gate(report).passed


def test_nothing_compared_does_not_pass() -> None:
    left = a_run({PADDED: (0.0,)})
    right = replace(left, testbed=replace(left.testbed, id="other"))
    result = gate(report_between(OneSide(left, 0), OneSide(right, 0)))
    assert not result.passed
    assert result.reasons[0].startswith("Nothing could be compared. Testbed differs")
    assert not gate(report_of(a_run({}, {}))).passed
