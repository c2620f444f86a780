"""Tokens across sides: what counts as a change, and what is rounding."""

from dataclasses import replace
from typing import Any

import pytest

from hybridwatch.analysis.cause import Area, causes_in
from hybridwatch.analysis.changed_tokens import compute_bound
from hybridwatch.analysis.detection import Detection, find_known_bad
from hybridwatch.analysis.gate import gate
from hybridwatch.analysis.report import Terms, build_report, report_between
from hybridwatch.analysis.subject import OneSide, list_sides
from hybridwatch.analysis.verdict import Comparison, Report, Verdict
from hybridwatch.analysis.wording.cause_text import cause_sentence
from hybridwatch.metrics import CHANGED_TOKENS, WRONG_ANSWERS
from hybridwatch.records.run import (
    NEAR_TIE_FLOAT32,
    NEAR_TIE_HALF,
    NEAR_TIE_ONE_ARITHMETIC,
    Failure,
)
from hybridwatch.reports.reason_text import because
from tests.builders import (
    BASELINE,
    CONTENDER,
    NEWER,
    TESTBED,
    a_build,
    a_run,
    a_run_that_said,
    said,
)

TWO_BUILDS = {"builds": (BASELINE, NEWER)}
HALF: dict[str, Any] = {"flags": {"dtype": "bfloat16"}}
AHEAD = said(1, 2, 3, near={1: (9, 0.0004)})
BEHIND = said(1, 9, 3, near={1: (2, 0.0006)})
"""A tie between 2 and 9 that falls the one way and the other."""


def changed(report: Report) -> Comparison | None:
    found = [c for c in report.comparisons if c.metric.id == CHANGED_TOKENS]
    return found[0] if found else None


def judged(*sides, **changes) -> Comparison:
    found = changed(build_report(a_run_that_said(*sides, **changes)))
    assert found is not None
    return found


def test_equal_tokens_are_equivalent() -> None:
    same = judged([[said(1, 2)]] * 3, [[said(1, 2)]] * 3)
    assert same.verdict is Verdict.EQUIVALENT
    assert same.contender is not None
    assert same.contender.values == (0.0, 0.0, 0.0)


def test_other_tokens_are_a_regression_counted_by_request_and_trial() -> None:
    old = [[said(1, 2, 3), said(4, 5)], [said(6), said(7)]]
    new = [[said(1, 2, 9), said(4, 9)], [said(6), said(9)]]
    found = judged(old, new)
    assert found.verdict is Verdict.REGRESSION
    assert found.contender is not None
    assert found.contender.values == (2.0, 1.0)
    places = [(one.trial, one.request, one.position) for one in found.changes]
    assert places == [(0, 0, 2), (0, 1, 1), (1, 1, 0)]
    assert (found.changes[0].baseline, found.changes[0].contender) == (3, 9)


def test_reason_names_the_first_change_with_its_logprobs() -> None:
    new = said(1, 9, 3, near={1: (2, 0.01)}, logprobs=(-0.1, -0.7, -0.1))
    old = said(1, 2, 3, near={1: (9, 0.02)}, logprobs=(-0.1, -0.6, -0.1))
    text = because(judged([[said(5), old]], [[said(5), new]]), 0.05)
    assert "1 request of 1 trial with other tokens" in text
    assert "request 2 of trial 1, goes another way at token 2" in text
    assert "logprob -0.6 and -0.7" in text
    assert "lies 0.02 nats behind" in text


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.00009, Verdict.EQUIVALENT), (0.00011, Verdict.REGRESSION)]
)
def test_one_arithmetic_rounds_otherwise_only_by_who_shares_a_step(gap, verdict) -> None:
    old, new = said(1, 2, near={1: (9, gap)}), said(1, 9, near={1: (2, gap)})
    assert judged([[old]], [[new]]).verdict is verdict


def test_near_tie_of_two_builds_is_a_change_of_one() -> None:
    assert judged([[AHEAD]], [[BEHIND]]).verdict is Verdict.REGRESSION


def test_near_tie_between_two_builds_does_not_count_and_is_a_doubt() -> None:
    found = judged([[AHEAD]], [[BEHIND]], **TWO_BUILDS)
    assert found.verdict is Verdict.EQUIVALENT
    assert "1 of 1 requests differ by near ties" in found.doubts[0]
    assert "at most 0.0006 nats apart, bound 0.001" in found.doubts[0]


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(said(1, 9, 3), id="the contender is sure of the other token"),
        pytest.param(said(1, 9, 3, near={1: (2, 0.002)}), id="beyond the bound"),
        pytest.param(said(1, 9, 3, near={1: (7, 0.0)}), id="tied with a third token"),
        pytest.param(said(1, 9, 3, near={2: (2, 0.0)}), id="tied at another place"),
        pytest.param(said(1, 9, 3, logprobs=()), id="no logprobs"),
        pytest.param(said(1, 2), id="cut short"),
    ],
)
def test_real_change_between_two_builds_is_a_regression(new) -> None:
    assert judged([[AHEAD]], [[new]], **TWO_BUILDS).verdict is Verdict.REGRESSION


def test_likely_tokens_on_both_sides_are_no_tie() -> None:
    """Equal logarithms of different tokens are no tie: each side is sure of its own."""
    old, new = said(2, logprobs=(-0.01,)), said(9, logprobs=(-0.01,))
    assert judged([[old]], [[new]], **TWO_BUILDS).verdict is Verdict.REGRESSION


def test_fixes_and_faults_leave_the_arithmetic_as_it_is() -> None:
    faulty = a_build("cpu-0.27.1+unzeroed-state", flags={"dtype": "float32", "planted": "x"})
    for contender in (BASELINE, CONTENDER, faulty):
        run = replace(a_run({}, {}), builds=(BASELINE, contender))
        assert compute_bound(*list_sides(run)) == NEAR_TIE_ONE_ARITHMETIC


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({"release": "0.28.0"}, NEAR_TIE_FLOAT32),
        ({"wheel_digest": "3" * 64}, NEAR_TIE_FLOAT32),
        ({"lock_digest": "3" * 64}, NEAR_TIE_FLOAT32),
        ({"code_digest": "3" * 64}, NEAR_TIE_FLOAT32),
        ({"accelerator": "cuda"}, NEAR_TIE_FLOAT32),
        ({"flags": {"dtype": "float32", "max_num_batched_tokens": "64"}}, NEAR_TIE_FLOAT32),
        (HALF, NEAR_TIE_HALF),
        ({"flags": {}}, NEAR_TIE_HALF),
    ],
)
def test_another_engine_may_round_otherwise(changes: dict[str, Any], bound: float) -> None:
    run = replace(a_run({}, {}), builds=(BASELINE, a_build(**changes)))
    assert compute_bound(*list_sides(run)) == bound


def test_half_precision_rounds_otherwise_from_batch_to_batch() -> None:
    """Even one build: who shares a step is not the same in two trials."""
    run = replace(a_run({}, {}), builds=(a_build(**HALF), a_build(**HALF)))
    assert compute_bound(*list_sides(run)) == NEAR_TIE_HALF


def test_another_machine_may_round_otherwise() -> None:
    old = a_run_that_said([[AHEAD]])
    new = a_run_that_said([[BEHIND]], id="22222222", testbed=replace(TESTBED, id="arm-4c"))
    report = report_between(OneSide(old, 0), OneSide(new, 0), Terms(across_testbeds=True))
    found = changed(report)
    assert found is not None
    assert found.verdict is Verdict.EQUIVALENT


def test_records_without_tokens_have_no_such_row() -> None:
    bare = a_run({"contract.wrong_tokens": (0.0,)}, {"contract.wrong_tokens": (0.0,)})
    assert changed(build_report(bare)) is None
    old, new = a_run({"contract.wrong_tokens": (0.0,)}), a_run_that_said([[said(1)]], id="2" * 8)
    assert changed(report_between(OneSide(old, 0), OneSide(new, 0))) is None


def test_side_from_before_right_answers_were_written_down_lacks_nothing() -> None:
    """A pinned baseline stays one."""
    old = a_run({"contract.wrong_tokens": (0.0,)})
    new = a_run({"contract.wrong_tokens": (0.0,), WRONG_ANSWERS: (0.0,)}, id="22222222")
    report = report_between(OneSide(old, 0), OneSide(new, 0))
    assert [c.metric.id for c in report.comparisons] == ["contract.wrong_tokens"]


def test_side_whose_oracle_is_out_of_date_is_missing() -> None:
    side = {"contract.wrong_tokens": (0.0,), WRONG_ANSWERS: (0.0,)}
    old, new = a_run(side), a_run({"contract.wrong_tokens": (0.0,)}, id="22222222")
    why = {WRONG_ANSWERS: "the oracle was asked other requests"}
    new = replace(new, trials=tuple(replace(trial, unsupported=why) for trial in new.trials))
    report = report_between(OneSide(old, 0), OneSide(new, 0))
    found = {c.metric.id: c.verdict for c in report.comparisons}
    assert found[WRONG_ANSWERS] is Verdict.MISSING


def test_wrong_tokens_of_the_baseline_have_no_claim_to_stay() -> None:
    """A fix that goes in changes them, and contract.wrong_tokens says that it is for the better."""
    old = [[said(1, is_wrong=True), said(2, is_wrong=False)]]
    new = [[said(9, is_wrong=False), said(2, is_wrong=False)]]
    found = judged(old, new)
    assert found.verdict is Verdict.EQUIVALENT
    assert "1 requests are left out" in found.doubts[0]


def test_baseline_that_is_wrong_throughout_has_nothing_to_compare() -> None:
    old, new = [[said(1, is_wrong=True)]], [[said(9, is_wrong=False)]]
    assert changed(build_report(a_run_that_said(old, new))) is None


def test_turn_that_follows_another_answer_is_not_compared() -> None:
    old = [[said(1), said(2, prompt="a" * 8)]]
    new = [[said(9), said(3, prompt="b" * 8)]]
    found = judged(old, new)
    assert [(one.request, one.contender) for one in found.changes] == [(0, 9)]


def test_trials_are_paired_by_number_past_a_failed_one() -> None:
    """Trial 2 has other prompts than trial 1, whatever became of trial 1."""
    run = a_run_that_said([[said(1)], [said(2)]], [[said(1)], [said(2)]])
    failed = replace(run.trials[0], completions=(), samples=(), failure=Failure("it died", ""))
    found = changed(build_report(replace(run, trials=(failed, *run.trials[1:]))))
    assert found is not None
    assert found.verdict is Verdict.EQUIVALENT
    assert found.contender is not None
    assert found.contender.values == (0.0,)


def test_changed_tokens_are_shown_and_stopped_as_a_broken_contract() -> None:
    report = build_report(a_run_that_said([[said(1)]], [[said(9)]], **TWO_BUILDS))
    assert not gate(report).passed
    [cause] = causes_in(report)
    assert (cause.area, cause.lead.metric) == (Area.CONTRACT, CHANGED_TOKENS)


@pytest.mark.parametrize(
    ("near", "text"), [(None, ""), ({1: (9, 0.02)}, ", 0.02 nats from the baseline")]
)
def test_sentence_says_where_tokens_part(near, text) -> None:
    run = a_run_that_said([[said(1), said(1, 2, near=near)]], [[said(1), said(1, 9)]], **TWO_BUILDS)
    report = build_report(run)
    [cause] = causes_in(report)
    assert cause_sentence(cause, report) == (
        f"A contract broke: contract.changed_tokens 0 -> 1 (first at token 2 of request 2{text})"
    )


def test_fix_that_moves_tokens_when_taken_out_is_caught_by_them() -> None:
    control = find_known_bad(build_report(a_run_that_said([[said(1)]], [[said(9)]])))
    assert control.detection is Detection.CAUGHT
    assert [found.metric.id for found in control.by] == [CHANGED_TOKENS]
    assert control.baseline_violations == ()
