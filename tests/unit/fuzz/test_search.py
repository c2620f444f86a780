"""A search tells the same stories for a seed, and makes a failing one as small as its rule."""

import pytest

from hybridwatch_lab.fuzz.story import Story
from tests.unit.fuzz.theatres import RuledTheatre, search


def long_prompt_after_an_abort(story: Story) -> bool:
    aborted = [at for at, one in enumerate(story.requests) if one.abort_step is not None]
    return any(one.input_tokens > 79 for at in aborted for one in story.requests[at + 1 :])


def never(_story: Story) -> bool:
    return False


def always(_story: Story) -> bool:
    return True


def test_a_failing_story_is_made_as_small_as_what_makes_it_fail():
    theatre = RuledTheatre(long_prompt_after_an_abort)
    failure = search(theatre).run(1)
    assert failure is not None
    assert failure.repeats
    assert len(failure.story.requests) == 2
    assert failure.story.requests[1].input_tokens == 80
    assert failure.faults == ("wrong",)
    assert long_prompt_after_an_abort(failure.first)


def test_the_same_seed_tells_the_same_stories_and_another_one_others():
    told = {}
    for turn, number in enumerate((7, 7, 8)):
        theatre = RuledTheatre(never)
        assert search(theatre, stories=30).run(number) is None
        told[turn] = theatre.told
    assert told[0] == told[1]
    assert told[0] != told[2]


def test_no_story_is_begun_after_the_time():
    theatre = RuledTheatre(never)
    assert search(theatre, seconds=20).run(0) is None
    assert len(theatre.told) == 21


def test_the_time_holds_while_a_story_is_made_smaller():
    theatre = RuledTheatre(lambda story: len(story.requests) >= 3)
    failure = search(theatre, seconds=6).run(3)
    assert failure is not None
    assert failure.faults
    # The last one begun in time, and one more on an engine of its own.
    assert len(theatre.told) <= 9


def test_no_story_is_played_twice_to_make_it_smaller():
    theatre = RuledTheatre(long_prompt_after_an_abort)
    failure = search(theatre).run(1)
    assert failure is not None
    others = [one for one in theatre.told if one not in {failure.first, failure.story}]
    pulse = theatre.told[0]
    others = [one for one in others if one != pulse]
    assert len(others) == len(set(others))


def test_an_engine_that_fails_the_simplest_story_is_not_asked_any_further():
    theatre = RuledTheatre(always)
    failure = search(theatre).run(0)
    assert failure is not None
    assert failure.repeats
    assert len(theatre.told) == 2
    assert len(failure.story.requests) == 1


class Once(RuledTheatre):
    """A story fails one time, and never again."""

    def verdict(self, story: Story) -> tuple[str, ...]:
        seen = story in self.told
        faults = super().verdict(story)
        return () if seen else faults


def test_a_failure_that_does_not_repeat_is_reported_as_such():
    theatre = Once(long_prompt_after_an_abort)
    failure = search(theatre).run(1)
    assert failure is not None
    assert not failure.repeats
    assert failure.story == failure.first == theatre.told[-1]
    assert failure.faults == ("wrong",)
    assert theatre.engines == 1


class LeavesUnwell(RuledTheatre):
    """From the first failing story on everything fails, until there is another engine."""

    unwell = False

    def verdict(self, story: Story) -> tuple[str, ...]:
        faults = super().verdict(story)
        self.unwell = self.unwell or bool(faults)
        return ("wrong",) if self.unwell else ()

    def open_anew(self) -> None:
        super().open_anew()
        self.unwell = False


@pytest.mark.parametrize("seed", [1, 2])
def test_an_engine_that_was_left_unwell_blames_no_innocent_story(seed):
    theatre = LeavesUnwell(long_prompt_after_an_abort)
    failure = search(theatre).run(seed)
    assert failure is not None
    assert failure.repeats
    assert long_prompt_after_an_abort(failure.story)
    assert len(failure.story.requests) == 2
    assert theatre.engines > 1
