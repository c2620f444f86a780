"""The rule for blocks: against SciPy, against counting by hand, and by simulation."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from hybridwatch.analysis import signed_rank

SIDES = ("two-sided", "less", "greater")


@pytest.mark.parametrize("alternative", SIDES)
def test_without_ties_and_zeros_it_is_scipys_exact_test(alternative) -> None:
    some = np.random.default_rng(1).normal(0.02, 0.03, 13)
    wanted = stats.wilcoxon(some, alternative=alternative, method="exact").pvalue
    assert signed_rank.signed_rank_p(some, alternative) == pytest.approx(wanted)


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize(
    "some",
    [
        (0.0, 0.0, 1.0, -1.0, 2.0, 2.0, 3.0, -2.0),
        (1.0, 1.0, 1.0, 1.0, -1.0),
        (0.0, 0.0, 0.0, 2.0, 2.0),
    ],
)
def test_with_ties_and_zeros_every_flip_of_signs_is_counted(some, alternative) -> None:
    ranks = np.where(np.array(some) == 0, 0, stats.rankdata(np.abs(some)))
    seen = ranks[np.array(some) > 0].sum()
    sums = np.array([np.dot(ranks, flips) for flips in product((0, 1), repeat=len(some))])
    less, greater = np.mean(sums <= seen), np.mean(sums >= seen)
    wanted = {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}
    assert signed_rank.signed_rank_p(some, alternative) == pytest.approx(wanted[alternative])


def test_scipy_is_not_exact_there() -> None:
    """One reason for our own; the other is that SciPy's tests take longer to import than to run."""
    some = (0.0, 0.0, 1.0, -1.0, 2.0, 2.0, 3.0, -2.0)
    theirs = stats.wilcoxon(some, zero_method="pratt", method="exact").pvalue
    assert theirs != pytest.approx(signed_rank.signed_rank_p(some))


def test_smallest_p_values_and_no_difference_at_all() -> None:
    assert signed_rank.signed_rank_p((0.0,) * 9) == 1.0
    for n in (signed_rank.SETTLING_BLOCKS, 10):
        assert signed_rank.signed_rank_p((0.1,) * n) == pytest.approx(2 / 2**n)
    assert 2 / 2**signed_rank.SETTLING_BLOCKS < 0.05 < 2 / 2 ** (signed_rank.SETTLING_BLOCKS - 1)
    assert signed_rank.signed_rank_p((0.1,) * 300) < 1e-20


def test_from_a_hundred_blocks_on_the_approximation_is_as_good() -> None:
    some = np.random.default_rng(2).normal(0.01, 0.04, 101)
    near = [stats.wilcoxon(some[:n], method="asymptotic").pvalue for n in (100, 101)]
    assert signed_rank.signed_rank_p(some[:100]) == pytest.approx(near[0], rel=0.03)
    assert signed_rank.signed_rank_p(some) == pytest.approx(near[1])


@pytest.mark.parametrize("alternative", SIDES)
def test_the_approximation_is_scipys_with_ties_and_zeros_too(alternative) -> None:
    some = np.round(np.random.default_rng(3).normal(0.01, 0.04, 130), 2)
    assert 0 in some
    wanted = stats.wilcoxon(
        some, zero_method="pratt", alternative=alternative, method="asymptotic"
    ).pvalue
    assert signed_rank.signed_rank_p(some, alternative) == pytest.approx(wanted, rel=1e-12)


def test_ratios_that_differ_in_the_last_digit_are_tied() -> None:
    up = math.log(4) - math.log(3)
    some = (up, up * (1 + 1e-15), up, -up, up, up, up, up, up, up)
    equal = tuple(math.copysign(up, one) for one in some)
    assert signed_rank.signed_rank_p(some) == signed_rank.signed_rank_p(equal)


def test_typical_change_is_deaf_to_a_hiccup() -> None:
    calm = [math.log(1.05)] * 12
    calm[3] = math.log(3.0)
    assert signed_rank.typical_change(calm) == pytest.approx(0.05)
    assert np.expm1(np.mean(calm)) > 0.1


def test_equality_is_shown_inside_the_margin_only() -> None:
    rng = np.random.default_rng(3)
    shown = dict.fromkeys((0.0, 0.03), 0)
    for change in shown:
        for _ in range(400):
            ratios = rng.normal(math.log1p(change), 0.03, 20)
            shown[change] += signed_rank.equivalence_p(ratios, 0.03) < 0.05
    assert shown[0.0] > 0.9 * 400
    assert shown[0.03] <= 0.08 * 400  # 5 % and three standard errors
    assert signed_rank.equivalence_p((0.0,) * 7, 0.03) == pytest.approx(2**-7)


def test_resamples_have_the_medians_that_counting_them_out_gives() -> None:
    logs = np.sort(np.random.default_rng(4).normal(size=9))
    drawn = np.random.default_rng(signed_rank.SEED).multinomial(9, np.full(9, 1 / 9), size=2000)
    left, right = np.triu_indices(9)
    resamples = (np.repeat(logs, counts) for counts in drawn)
    wanted = [np.median(some[left] + some[right]) / 2 for some in resamples]
    assert signed_rank._resampled(logs) == pytest.approx(wanted)


@pytest.mark.parametrize("n", [6, 10, 20])
def test_interval_holds_the_truth(n) -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        found = signed_rank.change_interval(rng.normal(math.log(1.1), 0.04, n))
        assert found is not None
        covered += found.low <= 0.1 <= found.high
    assert covered >= 0.92 * 300


def test_interval_is_repeatable_and_needs_six_blocks() -> None:
    logs = np.random.default_rng(6).normal(size=8)
    assert signed_rank.change_interval(logs) == signed_rank.change_interval(logs[::-1])
    assert signed_rank.change_interval(logs[:5]) is None
