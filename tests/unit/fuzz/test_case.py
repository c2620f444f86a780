"""What is told becomes a case, and what makes no difference does not."""

from hybridwatch_lab.fuzz.case import CaseBuilder, CaseRequest, FuzzCase, FuzzPhase, tidied


def test_requests_come_at_the_step_that_was_reached():
    builder = CaseBuilder()
    builder.ask(5, 2, 0)
    builder.make_steps(3)
    builder.ask(80, 1, 0)
    (phase,) = builder.case().acts
    assert phase.requests == (CaseRequest(0, 5, 2), CaseRequest(3, 80, 1))


def test_a_prompt_has_at_least_one_token_of_its_own():
    builder = CaseBuilder()
    builder.ask(80, 1, 320)
    assert builder.case().requests[0].shared_prefix_tokens == 79


def test_an_abort_counts_from_the_newest_request_and_happens_once():
    builder = CaseBuilder()
    builder.ask(5, 2, 0)
    builder.ask(6, 2, 0)
    builder.make_steps(2)
    builder.abort(1)
    builder.make_steps(1)
    builder.abort(1)
    builder.abort(7)
    assert [one.abort_step for one in builder.case().requests] == [2, None]


def test_a_rest_ends_the_act_and_the_next_one_has_its_budget():
    builder = CaseBuilder(dummy_batches=3)
    builder.ask(5, 2, 0)
    builder.rest(16)
    builder.make_steps(8)
    builder.ask(6, 2, 0)
    case = builder.case()
    assert [phase.token_budget for phase in case.acts] == [None, 16]
    assert [request.at_step for request in case.requests] == [0, 0]
    assert case.dummy_batches == 3


def test_acts_without_requests_and_steps_before_the_first_request_are_left_out():
    late = FuzzPhase((CaseRequest(4, 5, 2, abort_step=6), CaseRequest(5, 1, 1)))
    assert tidied(FuzzCase((FuzzPhase(()), late))) == FuzzCase(
        (FuzzPhase((CaseRequest(0, 5, 2, abort_step=2), CaseRequest(1, 1, 1))),)
    )
    assert tidied(FuzzCase((FuzzPhase(()),), dummy_batches=3)) == FuzzCase()


def test_what_was_asked_is_known_the_newest_first():
    builder = CaseBuilder()
    builder.ask(5, 2, 0)
    builder.rest(None)
    builder.ask(6, 2, 0)
    assert [one.input_tokens for one in builder.asked] == [6, 5]
