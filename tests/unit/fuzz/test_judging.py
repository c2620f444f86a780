"""What is wrong with a played case."""

import pytest

from hybridwatch.measurement.completions import prompt_digest, without_tokens
from hybridwatch.records.run import CloseCall, Completion
from hybridwatch.scenarios.expansion import PlannedRequest
from hybridwatch_lab.fuzz.engine_target import Judge, Played, first_tokens

PROMPT = (65, 66, 67)
BOUND = 0.001
RIGHT = Completion(prompt_digest(PROMPT), (1, 2, 3), (-0.1, -0.2, -0.3), (CloseCall(1, 9, 0.0004),))


def test_a_shorter_greedy_answer_is_the_beginning_of_a_longer_one():
    one = first_tokens(RIGHT, 1)
    assert (one.tokens, one.logprobs, one.close_calls) == ((1,), (-0.1,), ())


class Worker:
    """Answers with the draft, and counts how often it is asked."""

    def __init__(self) -> None:
        self.questions = 0

    def answer(self, questions):
        self.questions += len(questions)
        tops = [[[[token, -0.5]] for token in one.draft] for one in questions]
        return [
            {
                "prompt": list(one.prompt),
                "tokens": list(one.draft),
                "logprobs": [a[0][1] for a in top],
                "top": top,
            }
            for one, top in zip(questions, tops, strict=True)
        ]


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def judge(worker) -> Judge:
    return Judge(worker, BOUND)


def faults(judge: Judge, answer: Completion, **request) -> tuple[str, ...]:
    asked = PlannedRequest(PROMPT, 3, **request)
    return judge.faults(Played((asked,), (answer,)))


def test_a_right_answer_is_remembered_and_asked_for_once(judge, worker):
    answer = Completion(prompt_digest(PROMPT), (1, 2, 3), (-0.5, -0.5, -0.5))
    shorter = first_tokens(answer, 2)
    assert [faults(judge, one) for one in (answer, answer, shorter)] == [(), (), ()]
    assert worker.questions == 1


def test_of_one_prompt_in_a_case_the_longest_answer_is_asked_for(judge, worker):
    whole = Completion(prompt_digest(PROMPT), (1, 2, 3), (-0.5, -0.5, -0.5))
    answers = (first_tokens(whole, 2), whole, first_tokens(whole, 1))
    asked = tuple(PlannedRequest(PROMPT, len(one.tokens)) for one in answers)
    assert judge.faults(Played(asked, answers)) == ()
    assert worker.questions == 1


def test_a_wrong_answer_is_named_with_its_request(judge):
    assert faults(judge, Completion(prompt_digest(PROMPT), (1, 2, 3), (-0.5, -0.7, -0.5))) == (
        "request 0 (3 tokens): token 1: expected logprob -0.5, found -0.7",
    )


def test_logarithms_that_are_no_numbers_are_a_fault(judge):
    assert "no numbers" in faults(judge, without_tokens(PROMPT))[0]


def test_nobody_asks_for_the_answer_to_an_aborted_request(judge, worker):
    assert faults(judge, without_tokens(PROMPT), abort_at_step=2) == ()
    assert worker.questions == 0


def test_a_broken_contract_is_a_fault(judge):
    played = Played(counters={"slots_off_block_table": 2, "states_off": 0})
    assert judge.faults(played) == ("contract.slots_off_block_table: expected 0, found 2",)


def test_an_engine_that_did_not_come_to_the_end_is_a_fault(judge):
    assert "no end" in judge.faults(Played(trouble="no end of the case after 60 s"))[0]
