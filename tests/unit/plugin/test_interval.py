"""Ratios measured in rounds."""

import random

import pytest
from hybridwatch_engine_lab.studies.stepping import paired_ratio


def test_what_drifts_hits_both_sides_alike():
    drift = [1.0, 2.0, 4.0, 8.0, 16.0]
    found = paired_ratio([1.1 * value for value in drift], drift)
    assert (found.value, found.low, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert found.to_json() == {"ratio": found.value, "low": found.low, "high": found.high}


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    rng = random.Random(3)
    held = 0
    for _ in range(100):
        contender = [1.02 * rng.gauss(1, 0.03) for _ in range(25)]
        found = paired_ratio(contender, [rng.gauss(1, 0.03) for _ in range(25)])
        held += found.low <= 1.02 <= found.high
        assert found.low <= found.value <= found.high
    assert 88 <= held <= 100


def test_rounds_must_be_pairs():
    with pytest.raises(ValueError, match="argument 2 is longer"):
        paired_ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one round"):
        paired_ratio([], [])
