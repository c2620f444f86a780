"""Requests that are asked twice must be answered alike."""

from hybridwatch.measurement.completions import unrepeated
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave
from tests.completions import said

ONE = PlannedWave((PlannedRequest((5,), 2), PlannedRequest((6,), 2)))
AGAIN = PlannedWave(ONE.requests, again=True)


def count(*answered, waves=(ONE, AGAIN), dtype="float32"):
    return unrepeated(waves, answered, dtype)


def test_nothing_is_counted_where_nobody_asks_again():
    assert count(said(1, 2), said(3, 4), waves=(ONE,)) is None


def test_equal_answers_count_0_and_each_other_one_counts():
    alike = said(1, 2), said(3, 4), said(1, 2)
    assert count(*alike, said(3, 4)) == 0
    assert count(*alike, said(3, 5)) == 1
    assert count(*alike, said()) == 1


def test_each_wave_is_held_against_the_one_before_it():
    answers = said(1), said(2), said(1), said(2), said(7), said(2)
    assert count(*answers, waves=(ONE, AGAIN, AGAIN)) == 1


def test_what_rounding_decides_does_not_count():
    near = said(1, 2, near={1: (9, 0.0006)}), said(3, 4), said(1, 9, near={1: (2, 0.0004)})
    assert count(*near, said(3, 4)) == 0
    far = said(1, 2, near={1: (9, 0.02)}), said(3, 4), said(1, 9, near={1: (2, 0.02)}), said(3, 4)
    assert count(*far) == 1
    assert count(*far, dtype="bfloat16") == 0


def test_a_request_that_nobody_waited_for_is_not_compared():
    gone = PlannedWave((PlannedRequest((5,), 2, abort_at_step=1), ONE.requests[1]), "steps")
    assert count(said(), said(3, 4), said(1, 2), said(3, 4), waves=(gone, AGAIN)) == 0
