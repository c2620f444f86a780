"""A search tells the same cases for a seed, and makes a failing one as small as its rule."""

import pytest

from hybridwatch_lab.fuzz.case import CaseRequest, FuzzCase, FuzzPhase
from hybridwatch_lab.fuzz.search import FuzzFailure, case_lines, failure_lines
from tests.unit.fuzz.targets import RuledTarget, search


def long_prompt_after_an_abort(case: FuzzCase) -> bool:
    aborted = [at for at, one in enumerate(case.requests) if one.abort_step is not None]
    return any(one.input_tokens > 79 for at in aborted for one in case.requests[at + 1 :])


def never(_story: FuzzCase) -> bool:
    return False


def always(_story: FuzzCase) -> bool:
    return True


def test_a_failing_story_is_made_as_small_as_what_makes_it_fail():
    target = RuledTarget(long_prompt_after_an_abort)
    failure = search(target).run(1)
    assert failure is not None
    assert failure.repeats
    assert len(failure.case.requests) == 2
    assert failure.case.requests[1].input_tokens == 80
    assert failure.faults == ("wrong",)
    assert long_prompt_after_an_abort(failure.first)


def test_the_same_seed_tells_the_same_stories_and_another_one_others():
    told = {}
    for turn, number in enumerate((7, 7, 8)):
        target = RuledTarget(never)
        assert search(target, cases=30).run(number) is None
        told[turn] = target.told
    assert told[0] == told[1]
    assert told[0] != told[2]


def test_no_story_is_begun_after_the_time():
    target = RuledTarget(never)
    assert search(target, seconds=20).run(0) is None
    assert len(target.told) == 21


def test_the_time_holds_while_a_story_is_made_smaller():
    target = RuledTarget(lambda case: len(case.requests) >= 3)
    failure = search(target, seconds=6).run(3)
    assert failure is not None
    assert failure.faults
    # The last one begun in time, and one more on an engine of its own.
    assert len(target.told) <= 9


def test_no_story_is_played_twice_to_make_it_smaller():
    target = RuledTarget(long_prompt_after_an_abort)
    failure = search(target).run(1)
    assert failure is not None
    others = [one for one in target.told if one not in {failure.first, failure.case}]
    pulse = target.told[0]
    others = [one for one in others if one != pulse]
    assert len(others) == len(set(others))


def test_an_engine_that_fails_the_simplest_story_is_not_asked_any_further():
    target = RuledTarget(always)
    failure = search(target).run(0)
    assert failure is not None
    assert failure.repeats
    assert len(target.told) == 2
    assert len(failure.case.requests) == 1


class Once(RuledTarget):
    """A case fails one time, and never again."""

    def verdict(self, case: FuzzCase) -> tuple[str, ...]:
        seen = case in self.told
        faults = super().verdict(case)
        return () if seen else faults


def test_a_failure_that_does_not_repeat_is_reported_as_such():
    target = Once(long_prompt_after_an_abort)
    failure = search(target).run(1)
    assert failure is not None
    assert not failure.repeats
    assert failure.case == failure.first == target.told[-1]
    assert failure.faults == ("wrong",)
    assert target.engines == 1


class LeavesUnwell(RuledTarget):
    """From the first failing case on everything fails, until there is another engine."""

    unwell = False

    def verdict(self, case: FuzzCase) -> tuple[str, ...]:
        faults = super().verdict(case)
        self.unwell = self.unwell or bool(faults)
        return ("wrong",) if self.unwell else ()

    def open_anew(self) -> None:
        super().open_anew()
        self.unwell = False


@pytest.mark.parametrize("seed", [1, 2])
def test_an_engine_that_was_left_unwell_blames_no_innocent_story(seed):
    target = LeavesUnwell(long_prompt_after_an_abort)
    failure = search(target).run(seed)
    assert failure is not None
    assert failure.repeats
    assert long_prompt_after_an_abort(failure.case)
    assert len(failure.case.requests) == 2
    assert target.engines > 1


COMMON = "80 of them the common text"
CASE = FuzzCase(
    (
        FuzzPhase((CaseRequest(0, 160, 8, abort_step=2), CaseRequest(1, 81, 2, 80))),
        FuzzPhase((CaseRequest(0, 3, 1),), token_budget=16),
    ),
    dummy_batches=3,
)


def test_a_story_is_reported_step_by_step():
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
