"""One side alone is right or wrong by what its scenario expects; no baseline is needed for that."""

from dataclasses import replace

import pytest

from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.report import EXPECTED, build_report, report_alone
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import ComparisonError
from hybridwatch.records.identity import Expected
from hybridwatch.records.run import Phase
from tests.builders import BASELINE, a_run, with_failures

PADDED = "contract.padded_rows_prefilling"
RECALL = "accuracy.recall"
EXPECTATION = Expected({PADDED: 0.0}, {RECALL: 0.75})
HEALTHY = {PADDED: (0.0, 0.0), RECALL: "1111", "ttft": (0.1, 0.2)}


def verdicts(side, expected=EXPECTATION, **changes) -> dict[str, Verdict]:
    report = build_report(a_run(side, expected=expected, **changes))
    return {one.metric.id: one.verdict for one in report.comparisons}


def test_a_healthy_engine_is_as_expected_and_its_times_are_not_judged() -> None:
    assert verdicts(HEALTHY) == {PADDED: Verdict.EQUIVALENT, RECALL: Verdict.EQUIVALENT}


@pytest.mark.parametrize(
    ("wrong", "metric"), [({PADDED: (0.0, 27.0)}, PADDED), ({RECALL: "0001"}, RECALL)]
)
def test_what_is_not_as_expected_is_a_regression_and_stops_a_gate(wrong, metric) -> None:
    report = build_report(a_run(HEALTHY | wrong, expected=EXPECTATION))
    (bad,) = report.bad_news
    assert (bad.metric.id, bad.verdict) == (metric, Verdict.REGRESSION)
    assert not gate(report).passed
    assert report.baseline.build.label == EXPECTED
    assert report.contender.build.label == BASELINE.label


def test_a_record_without_expectations_is_held_to_its_contracts() -> None:
    assert verdicts(HEALTHY, None) == {PADDED: Verdict.EQUIVALENT}
    assert verdicts({PADDED: (1.0,)}, None) == {PADDED: Verdict.REGRESSION}


def test_a_count_that_must_be_exact_may_not_be_lower_either() -> None:
    expected = Expected({"host_syncs_per_step": 2.0}, {})
    counted = {"host_syncs_per_step": (1.0, 1.0)}
    assert verdicts(counted, expected) == {"host_syncs_per_step": Verdict.REGRESSION}


def test_what_is_expected_and_was_not_measured_is_missing_unless_its_phase_was_left_out() -> None:
    expected = Expected({PADDED: 0.0, "contract.wrong_tokens": 0.0}, {RECALL: 0.75})
    found = verdicts({PADDED: (0.0,)}, expected)
    assert found == {PADDED: Verdict.EQUIVALENT, "contract.wrong_tokens": Verdict.MISSING}


@pytest.mark.parametrize("phase", [Phase.CONTRACT, Phase.PERFORMANCE])
def test_an_engine_that_died_in_every_trial_of_a_phase_has_failed(phase) -> None:
    side = {PADDED: (0.0,)} if phase is Phase.PERFORMANCE else {"ttft": (0.1,)}
    report = build_report(with_failures(a_run(side, expected=EXPECTATION), 0, phase, 2))
    assert Verdict.FAILED in {one.verdict for one in report.comparisons}
    assert [trial.phase for trial in report.failed_trials] == [phase, phase]
    assert not gate(report).passed


def test_times_alone_cannot_be_judged() -> None:
    with pytest.raises(ComparisonError, match="expects nothing of what was measured"):
        report_alone(OneSide(a_run({"ttft": (0.1,)}), 0))


def test_an_engine_beside_itself_is_held_to_its_contracts_too() -> None:
    broken = {PADDED: (27.0,)}
    beside_itself = a_run(broken, broken, builds=(BASELINE, BASELINE))
    (one,) = build_report(beside_itself).comparisons
    assert one.verdict is Verdict.REGRESSION
    (other,) = build_report(
        replace(beside_itself, builds=(BASELINE, replace(BASELINE, label="b")))
    ).comparisons
    assert other.verdict is Verdict.BROKEN, "never green, and not this change's doing"
