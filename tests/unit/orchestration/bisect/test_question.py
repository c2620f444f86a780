"""Plain bisection: always right about the range, and never slower than halving."""

import math

from hypothesis import given
from hypothesis import strategies as st

from hybridwatch.errors import LostProbeError
from hybridwatch.orchestration.bisect.question import (
    Bracket,
    ProbeAnswer,
    find_exact,
    next_position,
    next_positions,
)


@st.composite
def histories(draw):
    """How long a list is, where the change is, and what cannot be measured."""
    last = draw(st.integers(1, 200))
    change = draw(st.integers(1, last))
    dumb = draw(st.frozensets(st.integers(1, max(1, last - 1)), max_size=last))
    return last, change, dumb - {last}


def search(last, change, dumb, may_go_on=lambda: True):
    """Find the change, and what was asked on the way."""
    asked = []

    def ask(at):
        asked.append(at)
        if at in dumb:
            return ProbeAnswer.SKIPPED
        return ProbeAnswer.CHANGED if at >= change else ProbeAnswer.UNCHANGED

    return find_exact(last, ask, may_go_on), asked


@given(histories())
def test_range_holds_the_change_and_is_as_narrow_as_can_be(history):
    last, change, dumb = history
    place, asked = search(last, change, dumb)
    assert place.good < change <= place.bad
    assert all(at in dumb for at in range(place.good + 1, place.bad))
    assert len(asked) == len(set(asked))


@given(histories())
def test_answers_are_no_more_than_halving_takes(history):
    last, _, dumb = history
    _, asked = search(*history)
    answers = [at for at in asked if at not in dumb]
    assert len(answers) <= math.ceil(math.log2(last))
    assert len(asked) <= math.ceil(math.log2(last)) + len(dumb)


@given(histories(), st.integers(0, 4))
def test_search_that_is_cut_short_still_holds_the_change(history, most):
    last, change, dumb = history
    left = iter([True] * most)
    place, asked = search(last, change, dumb, lambda: next(left, False))
    assert place.good < change <= place.bad
    assert len(asked) <= most


def test_sixty_four_positions_take_six_answers():
    for change in range(1, 65):
        place, asked = search(64, change, frozenset())
        assert (place.good, place.bad, place.is_found) == (change - 1, change, True)
        assert len(asked) == 6


def test_what_may_come_next_is_both_next_middles() -> None:
    assert next_positions(Bracket(0, 16), 3) == (8, 4, 12)
    assert next_positions(Bracket(0, 16), 1) == (8,)
    assert next_positions(Bracket(0, 2), 3) == (1,)
    assert next_positions(Bracket(0, 1), 3) == ()


@given(histories())
def test_whatever_is_asked_next_was_expected(history):
    last, change, dumb = history
    place = Bracket(0, last)
    while (at := next_position(place)) is not None:
        expected = next_positions(place, 3)
        side = ProbeAnswer.CHANGED if at >= change else ProbeAnswer.UNCHANGED
        place = place.after(at, ProbeAnswer.SKIPPED if at in dumb else side)
        following = next_position(place)
        assert at in dumb or following in (*expected[1:], None)


def test_a_search_that_loses_a_measurement_keeps_what_it_knows() -> None:
    def ask(at):
        if at == 4:
            raise LostProbeError("gone")
        return ProbeAnswer.CHANGED

    assert find_exact(16, ask) == Bracket(0, 8)


def test_of_two_in_the_middle_the_later_one_is_asked():
    assert next_position(Bracket(0, 5)) == 3
    assert next_position(Bracket(3, 5)) == 4
    assert next_position(Bracket(4, 5)) is None
