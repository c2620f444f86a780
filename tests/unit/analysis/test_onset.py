"""Since when a run is bad: the range on the first morning, later, and where it came slowly."""

import numpy as np
import pytest

from hybridwatch.analysis.change_point.place import FEWEST, find_onset

ERROR = 0.0075
"""Of an effect of ten trials a side."""
TIMES = 200


def sessions(shape, seed):
    """Effects with the noise of trials, and their errors as ten trials a side tell them."""
    random = np.random.default_rng(seed)
    return shape + random.normal(0, ERROR, shape.size), ERROR * np.sqrt(
        random.chisquare(9, shape.size) / 9
    )


def step(before, after, size=0.06):
    return size * (np.arange(before + after) >= before)


def drift(before, nights, size):
    return size * np.clip(np.arange(before + nights) - before + 1, 0, None) / nights


@pytest.mark.parametrize("after", [1, 3, 15])
@pytest.mark.parametrize("way", [1, -1])
def test_the_range_holds_the_first_bad_run_and_is_short(after, way):
    found = []
    for seed in range(TIMES):
        before = FEWEST + 1 + seed % 40
        values, errors = sessions(way * step(before, after), seed)
        found.append((before, find_onset(values, errors, before)))
    held = [place is not None and place.first <= at <= place.last for at, place in found]
    assert np.mean(held) >= 0.95
    assert np.mean([place.last - place.first for _, place in found if place]) < 1


def test_a_step_that_was_seen_late_is_looked_for_before_the_run_that_told_it():
    values, errors = sessions(step(20, 10), seed=1)
    place = find_onset(values, errors, 25)
    assert place is not None
    assert place.index == 20


def test_what_came_slowly_blames_no_few_runs():
    slow = []
    for seed in range(TIMES):
        values, errors = sessions(drift(20, 15, 0.045), seed)
        slow.append(find_onset(values, errors, 34) is None)
    assert np.mean(slow) >= 0.9


def test_values_without_noise_are_placed_exactly():
    place = find_onset(step(8, 2), np.zeros(10), 9)
    assert place is not None
    assert (place.first, place.index, place.last) == (8, 8, 8)
