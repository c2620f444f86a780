"""The simulation of bisection by times: what each way makes of a history that is easy to see."""

import numpy as np
import pytest

from hybridwatch_lab.calibration.bisection import SETTINGS, WAYS, find_by_bayesect, page, simulated
from hybridwatch_lab.calibration.made_history import DUETS, HistorySetting


@pytest.mark.parametrize("way", WAYS)
def test_every_way_finds_a_step_that_is_far_beyond_noise(way):
    found = [simulated(WAYS[way], HistorySetting(0.002, 0.12), 1, number) for number in range(5)]
    made = [one for one in found if one is not None]
    assert len(made) == 5
    assert sum(one.right for one in made) >= 4
    assert all(one.sessions for one in made)


def test_plain_bisection_is_often_wrong_where_ours_is_not():
    right = {
        way: sum(
            one.right
            for number in range(20)
            if (one := simulated(WAYS[way], HistorySetting(0.05, 0.06), 2, number)) is not None
        )
        for way in ("hybridwatch", "plain bisection")
    }
    assert right["hybridwatch"] >= 17
    assert right["plain bisection"] <= right["hybridwatch"] - 3


def test_search_by_duets_takes_each_for_a_session():
    found = [
        simulated(WAYS["hybridwatch"], HistorySetting(0.02, 0.06, timing=DUETS), 3, n)
        for n in range(20)
    ]
    made = [one for one in found if one is not None]
    assert len(made) >= 19
    assert all(one.holds for one in made)
    assert sum(one.right for one in made) >= 18


def test_ends_that_do_not_differ_are_not_searched():
    assert simulated(WAYS["hybridwatch"], HistorySetting(0.05, 0.0), 1, 3) is None


def test_page_says_how_it_was_made_and_is_the_same_again():
    text = page(7, 2, lambda _line: None)
    assert "bisection --seed 7 --histories 2 --write" in text
    assert text.count("\n| ") == 1 + len(SETTINGS) * len(WAYS)
    assert page(7, 2, lambda _line: None) == text


def test_bayesect_doubts_a_commit_that_answers_now_so_now_so():
    rng = np.random.default_rng(1)

    def measure(at):
        return bool(rng.random() < (0.9 if at >= 20 else 0.2))

    belief = find_by_bayesect([1.0] * 40, measure)
    assert belief.best().mass >= 0.95
    assert abs(belief.best().bad - 20) <= 1
