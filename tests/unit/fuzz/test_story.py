"""What is told becomes a story, and what makes no difference does not."""

from hybridwatch_lab.fuzz.story import Act, Story, StoryRequest, Teller, tidied


def test_requests_come_at_the_step_that_was_reached():
    teller = Teller()
    teller.ask(5, 2, 0)
    teller.make_steps(3)
    teller.ask(80, 1, 0)
    (act,) = teller.story().acts
    assert act.requests == (StoryRequest(0, 5, 2), StoryRequest(3, 80, 1))


def test_a_prompt_has_at_least_one_token_of_its_own():
    teller = Teller()
    teller.ask(80, 1, 320)
    assert teller.story().requests[0].shared_prefix_tokens == 79


def test_an_abort_counts_from_the_newest_request_and_happens_once():
    teller = Teller()
    teller.ask(5, 2, 0)
    teller.ask(6, 2, 0)
    teller.make_steps(2)
    teller.abort(1)
    teller.make_steps(1)
    teller.abort(1)
    teller.abort(7)
    assert [one.abort_step for one in teller.story().requests] == [2, None]


def test_a_rest_ends_the_act_and_the_next_one_has_its_budget():
    teller = Teller(dummy_batches=3)
    teller.ask(5, 2, 0)
    teller.rest(16)
    teller.make_steps(8)
    teller.ask(6, 2, 0)
    story = teller.story()
    assert [act.token_budget for act in story.acts] == [None, 16]
    assert [request.at_step for request in story.requests] == [0, 0]
    assert story.dummy_batches == 3


def test_acts_without_requests_and_steps_before_the_first_request_are_left_out():
    late = Act((StoryRequest(4, 5, 2, abort_step=6), StoryRequest(5, 1, 1)))
    assert tidied(Story((Act(()), late))) == Story(
        (Act((StoryRequest(0, 5, 2, abort_step=2), StoryRequest(1, 1, 1))),)
    )
    assert tidied(Story((Act(()),), dummy_batches=3)) == Story()


def test_what_was_asked_is_known_the_newest_first():
    teller = Teller()
    teller.ask(5, 2, 0)
    teller.rest(None)
    teller.ask(6, 2, 0)
    assert [one.input_tokens for one in teller.asked] == [6, 5]
