"""Since when a run is bad: the range on the first morning, later, and where it came slowly.

Two levels: told where runs or trials fall on one of two, and not where noise has one mode.
"""

import numpy as np
import pytest

from hybridwatch.analysis.change_point import ChangePoint, History, HistoryState
from hybridwatch.analysis.change_point.noise import two_levels
from hybridwatch.analysis.change_point.place import FEWEST, find_onset
from hybridwatch.analysis.verdict import Interval

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


def runs(kind, seed, n=60, trials=6):
    """Runs of some trials each at 1 %, some of which are 6 % slower."""
    draw = np.random.default_rng(seed)
    noise = 1 + draw.normal(0, 0.01, (n, trials))
    if kind == "start":
        return noise * np.where(draw.random((n, 1)) < 0.4, 1.06, 1.0)
    if kind == "trial":
        return noise * np.where(draw.random((n, trials)) < 0.4, 1.06, 1.0)
    if kind == "slow nights":
        return noise * np.where(draw.random((n, 1)) < 0.1, 1.12, 1.0)
    if kind == "evenly spread":
        return 1 + draw.uniform(-0.03, 0.03, (n, trials))
    if kind == "tails":
        return 1 + 0.01 * draw.standard_t(3, (n, trials))
    if kind == "starts differ":
        return noise + draw.normal(0, 0.02, (n, 1))
    return noise


@pytest.mark.parametrize("kind", ["start", "trial"])
@pytest.mark.parametrize("seed", range(5))
def test_two_levels_are_reported_with_both_and_with_what_chooses(kind, seed) -> None:
    found = two_levels(runs(kind, seed).tolist(), History())
    assert found is not None
    assert (found.low, found.high) == pytest.approx((1.0, 1.06), abs=0.01)
    assert found.share == pytest.approx(0.4, abs=0.2)
    assert found.by_run is (kind == "start")
    words = found.text("{:.2f} s".format)
    assert "1.00 s and 1.06 s" in words
    assert ("from start to start" in words) is found.by_run


@pytest.mark.parametrize("kind", ["start", "trial"])
def test_two_levels_are_reported_in_forty_noisy_nights_of_which_some_are_slow(kind) -> None:
    found = []
    for seed in range(40):
        slow = np.random.default_rng(seed).random((40, 1)) < 0.03
        noise = runs("one", seed + 100, n=40, trials=10)
        nights = runs(kind, seed, n=40, trials=10) * noise * np.where(slow, 1.15, 1.0)
        two = two_levels(nights.tolist(), History())
        found.append(two is not None and two.by_run is (kind == "start"))
    assert np.mean(found) >= 0.8


def test_medians_alone_show_levels_of_runs() -> None:
    found = two_levels([(value,) for value in np.median(runs("start", 3), axis=1)], History())
    assert found is not None
    assert found.by_run


@pytest.mark.parametrize("kind", ["one", "tails", "starts differ", "slow nights", "evenly spread"])
def test_noise_of_one_mode_has_one_level(kind) -> None:
    assert [two_levels(runs(kind, seed).tolist(), History()) for seed in range(15)] == [None] * 15


def test_a_change_of_level_is_not_two_levels() -> None:
    stepped = runs("one", 1)
    stepped[20:] *= 1.06
    change = ChangePoint(20, 0.06, Interval(0.05, 0.07, 0.95), HistoryState.CONFIRMED, 20, 20)
    assert two_levels(stepped.tolist(), History((change,))) is None
    # Seen by a rule that knows of no change, it would be.
    assert two_levels(stepped.tolist(), History()) is not None


@pytest.mark.parametrize("values", [[], [[1.0]] * 30, [[0.0], [2.0]] * 20, [[1.0], [2.0]] * 5])
def test_too_few_equal_or_not_positive_values_have_no_two_levels(values) -> None:
    assert two_levels(values, History()) is None
