"""How much starts differ, estimated from blocks whose truth is known."""

import numpy as np
import pytest

from hybridwatch_lab.calibration.recording.starts import StartBlock, estimate, show

STARTS, BLOCKS, TRIALS = 20, 6, 0.02


def made(luck, seed, name="tpot"):
    """Blocks of starts that differ by ``luck``, of trials that scatter by ``TRIALS``."""
    rng = np.random.default_rng(seed)
    for start in range(STARTS):
        level = rng.normal(0, luck)
        for _ in range(BLOCKS):
            yield StartBlock(start, {name: level + rng.normal(0, TRIALS)})


@pytest.mark.parametrize("luck", [0.0, 0.005, 0.02])
def test_the_interval_holds_the_truth_as_often_as_it_says(luck):
    found = [estimate(made(luck, seed))[0] for seed in range(200)]
    held = sum(one.low <= luck <= one.high for one in found)
    # 95 of 100 were promised; where starts are alike, the lower end is 0 and cannot miss.
    assert held >= 200 * 0.91
    assert np.median([one.trials for one in found]) == pytest.approx(TRIALS, rel=0.05)
    assert np.median([one.luck for one in found]) == pytest.approx(luck, abs=0.004)


def test_luck_is_not_what_trials_scatter_by():
    # The planted mistake: the means of starts differ by trials alone, too.
    (alike,) = estimate(made(0.0, 1))
    assert alike.luck < TRIALS / np.sqrt(BLOCKS)
    (apart,) = estimate(made(0.05, 1))
    assert apart.low > 0.02


def test_a_start_that_was_cut_short_is_left_out():
    blocks = list(made(0.02, 3))[:-1]
    assert estimate(blocks)[0].starts == STARTS - 1
    assert estimate(blocks[:1]) == []


def test_the_table_is_in_per_cent():
    assert "| tpot | 20 | " in show(estimate(made(0.02, 1)))
