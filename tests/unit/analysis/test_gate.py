from dataclasses import replace

import pytest

from hybridwatch.analysis.gate import LUCK, gate
from hybridwatch.analysis.one_side import OneSide
from hybridwatch.analysis.policy import Action, Policy, Rule
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.records.identity import Expected
from hybridwatch.reports.sentence import unsure
from tests.builders import a_run, noisy
from tests.situations import broken

PADDED = "contract.padded_rows_prefilling"
TASKS = ("accuracy.chain", "accuracy.lookup", "accuracy.recall")


def test_bad_news_fails_with_its_reason() -> None:
    result = gate(build_report(a_run({PADDED: (0.0,), "ttft": (1.0,)}, {PADDED: (1.0,)})))
    assert not result.passed
    assert result.reasons == (
        f"{PADDED} value: regression",
        "ttft median: missing",
        "ttft p99: missing",
    )


def test_equivalent_and_inconclusive_pass() -> None:
    side = {PADDED: (0.0,), "tpot": noisy(1.0, 2)}
    result = gate(build_report(a_run(side, side)))
    assert result.passed
    assert result.reasons == ()


def lost_a_little(tasks):
    """A run in which each task lost as many answers as p 0.03 tells."""
    right, wrong = "1" * 200, "0" * 5 + "1" * 195
    return a_run(dict.fromkeys(tasks, right), dict.fromkeys(tasks, wrong))


def test_what_only_the_report_is_sure_of_is_a_warning() -> None:
    """A gate without Holm's control would stop here: all are red in the report."""
    report = build_report(lost_a_little(TASKS))
    assert {c.verdict for c in report.comparisons} == {Verdict.REGRESSION}
    result = gate(report)
    assert result.passed
    assert result.reasons == ()
    assert [line.partition(" ")[0] for line in result.warnings] == sorted(TASKS)
    assert all("not under Holm's control" in line for line in result.warnings)


def test_what_starts_of_the_engine_differ_by_is_a_warning() -> None:
    report = build_report(lost_a_little(TASKS[:1]))
    lucky = replace(report, comparisons=tuple(replace(c, of_luck=True) for c in report.comparisons))
    result = gate(lucky)
    assert result.passed
    assert result.warnings == (f"{TASKS[0]} mean: regression, but {LUCK}",)
    assert unsure(lucky) == f"A gate only warns of {TASKS[0]}: {LUCK}."
    assert not unsure(report)


def test_the_same_change_alone_stops() -> None:
    result = gate(build_report(lost_a_little(TASKS[:1])))
    assert not result.passed
    assert result.warnings == ()


def test_a_contract_needs_no_control_to_stop() -> None:
    report = build_report(a_run({PADDED: (0.0,)}, {PADDED: (1.0,)}))
    assert report.comparisons[0].p_holm is None
    assert not gate(report).passed


def test_nothing_compared_does_not_pass() -> None:
    left = a_run({PADDED: (0.0,)})
    right = replace(left, testbed=replace(left.testbed, id="other"))
    result = gate(report_between(OneSide(left, 0), OneSide(right, 0)))
    assert not result.passed
    assert result.reasons[0].startswith("Nothing could be compared. Testbed differs")
    assert not gate(build_report(a_run({}, {}))).passed


BOTH = (
    "broken on both sides, so not new: exactly 0 is expected, the baseline has 10 and the contender"
)
WRONG = "contract.wrong_answers"


def test_what_is_broken_on_both_sides_stops_though_another_contract_holds_again() -> None:
    result = gate(broken())
    assert not result.passed
    assert result.reasons[0].startswith(f"{WRONG} value: {BOTH} 10")
    assert [line.partition(" ")[0] for line in result.reasons] == [WRONG, "accuracy.recall"]
    assert not unsure(broken()), "no test decided that it is broken, so none is doubted"


@pytest.mark.parametrize("action", list(Action))
def test_what_the_policy_knows_to_be_broken_only_warns_and_a_regression_still_stops(action) -> None:
    policy = Policy((Rule("*", action=action, known="vllm#45414"),))
    result = gate(broken(), policy)
    assert result.passed
    assert all(line.endswith(", known as vllm#45414") for line in result.warnings)
    worse = build_report(a_run({WRONG: (3.0,)}, {WRONG: (4.0,)}))
    assert gate(worse, policy).passed is (action is not Action.BLOCK)


@pytest.mark.parametrize("action", [Action.WARN, Action.WATCH])
def test_a_policy_that_does_not_block_says_of_what_is_broken_that_it_is(action) -> None:
    result = gate(broken(), Policy((Rule("*", action=action),)))
    assert result.passed
    assert len(result.warnings) == 2


def test_too_few_right_answers_stop_whether_they_are_as_many_or_more() -> None:
    for old, new in (("1" * 100 + "0" * 100, "1" * 150 + "0" * 50), ("1" * 191 + "0" * 9,) * 2):
        expected = Expected({}, {"accuracy.recall": 0.96})
        (one,) = build_report(
            a_run({"accuracy.recall": old}, {"accuracy.recall": new}, expected=expected)
        ).comparisons
        assert one.verdict is Verdict.BROKEN
    enough = Expected({}, {"accuracy.recall": 0.95})
    run = a_run({"accuracy.recall": new}, {"accuracy.recall": new}, expected=enough)
    assert gate(build_report(run)).passed
