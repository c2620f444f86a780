"""A failure is told so that a person can follow it."""

from hybridwatch_lab.fuzz.case import CaseRequest, FuzzCase, FuzzPhase
from hybridwatch_lab.fuzz.search import FuzzFailure, case_lines, failure_lines

COMMON = "80 of them the common text"
CASE = FuzzCase(
    (
        FuzzPhase((CaseRequest(0, 160, 8, abort_step=2), CaseRequest(1, 81, 2, 80))),
        FuzzPhase((CaseRequest(0, 3, 1),), token_budget=16),
    ),
    dummy_batches=3,
)


def test_a_story_is_told_step_by_step():
    assert list(case_lines(CASE)) == [
        "from an engine at rest:",
        "  before step 0: request 0 comes, 160 tokens, for an answer of 8",
        f"  before step 1: request 1 comes, 81 tokens, {COMMON}, for an answer of 2",
        "  before step 2: request 0 is aborted, if it is not answered yet",
        "  until the engine is at rest, then 3 dummy batches",
        "from an engine at rest, at most 16 tokens a step:",
        "  before step 0: request 2 comes, 3 tokens, for an answer of 1",
        "  until the engine is at rest, then 3 dummy batches",
    ]


def test_a_failure_says_what_was_wrong_and_whether_it_repeats():
    failure = FuzzFailure(CASE, ("request 1: wrong",), CASE, 12.0, 34.0, repeats=False)
    lines = list(failure_lines(failure, 9))
    assert "  request 1: wrong" in lines
    assert any(line.startswith("not repeatable") for line in lines)
    assert lines[-1] == (
        "seed 9: found after 12 s in a case of 3 requests; 34 s to make it one of 3"
    )
