"""One joint test of all timed metrics: exact, and deaf to what moves them together.

The rule for blocks: against SciPy, against counting by hand, and by simulation.
"""

import itertools
import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from hybridwatch.analysis import signed_rank
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.signed_rank import BlockRow, Tail, flip_p, moderated
from hybridwatch.analysis.verdict import Verdict
from hybridwatch_lab.calibration.reports import report_on
from tests.builders import a_run, noisy
from tests.situations import regression


def rows(values, *, shares_variance: bool = True) -> list[BlockRow]:
    return [BlockRow(tuple(some), shares_variance) for some in values]


def drawn(seed: int, metrics: int, blocks: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.03, (metrics, blocks))


def test_a_row_alone_has_the_p_of_all_its_flips() -> None:
    ratios = (0.01, 0.03, -0.02, 0.05, 0.04, 0.02)
    sums = [
        sum(s * x for s, x in zip(signs, ratios, strict=True))
        for signs in itertools.product((1, -1), repeat=6)
    ]
    wanted = np.mean(np.array(sums) >= sum(ratios) - 1e-12)
    ((worse, better),) = flip_p(rows([ratios]))
    assert worse.alone == worse.adjusted == pytest.approx(wanted)
    assert better.alone == pytest.approx(np.mean(np.array(sums) >= -sum(ratios) - 1e-12))


def test_one_metric_seen_twice_costs_nothing() -> None:
    ratios = drawn(1, 1, 7) + 0.03
    ((once, _),) = flip_p(rows(ratios))
    twice, *_ = flip_p(rows([ratios[0]] * 5))
    assert twice[0].adjusted == once.adjusted


def test_other_metrics_cost_and_a_metric_without_noise_does_not() -> None:
    ratios = drawn(2, 6, 8)
    ratios[0] += 0.04
    alone = flip_p(rows(ratios[:1]))[0][0]
    beside = flip_p(rows(ratios))[0][0]
    assert beside.adjusted > alone.adjusted
    assert flip_p(rows([ratios[0], np.zeros(8)]))[0][0].adjusted == alone.adjusted
    assert flip_p(rows([np.zeros(8)]))[0][0].alone == 1.0


def test_worse_and_better_change_places_with_the_sides() -> None:
    ratios = drawn(3, 4, 9)
    assert flip_p(rows(-ratios)) == tuple((b, a) for a, b in flip_p(rows(ratios)))


def test_the_order_of_metrics_and_of_blocks_changes_nothing() -> None:
    ratios = drawn(4, 5, 7)
    found = flip_p(rows(ratios))
    assert flip_p(rows(ratios[::-1])) == found[::-1]
    assert flip_p(rows(ratios[:, ::-1])) == found


def test_noise_is_lent_by_what_is_alike_and_not_by_what_is_not() -> None:
    like = [1.0, 1.1, 0.9, 1.05, 0.95]
    assert moderated(like, 7) == pytest.approx([moderated(like, 7)[0]] * 5)
    apart = [1.0, 100.0, 0.01, 30.0, 0.3]
    assert max(moderated(apart, 7)) > 90
    assert min(moderated(apart, 7)) < 0.03
    assert list(moderated([2.0], 7)) == [2.0]


def test_a_change_without_noise_does_not_drown_in_a_metric_that_is_all_noise(monkeypatch) -> None:
    """Throughput and ttft of 20 % in every block, beside a time that scatters by half."""
    assert {c.verdict for c in regression().comparisons if c.metric.id == "ttft"} == {
        Verdict.REGRESSION
    }
    monkeypatch.setattr(signed_rank, "OWN_NOISE_PENALTY", 99.0)
    drowned = {c.verdict for c in regression().comparisons if c.metric.id == "ttft"}
    assert drowned == {Verdict.INCONCLUSIVE}


def test_many_blocks_are_flipped_by_chance_and_always_alike() -> None:
    ratios = drawn(5, 3, 30)
    assert flip_p(rows(ratios)) == flip_p(rows(ratios))
    ((worse, _),) = flip_p(rows(np.full((1, 30), 0.05)))
    assert worse.alone == 1 / signed_rank.FLIPS


def outcomes(reports: int = 200) -> tuple[int, int]:
    """Count reports of nine metrics in seven blocks at CV 3 %, of 200.

    Returns:
        How many are red although nothing changed, and in how many +5 % in one metric is found.
    """
    rng = np.random.default_rng(6)
    red = found = 0
    for _ in range(reports):
        sides = [np.exp(0.03 * rng.standard_normal((9, 7))) for _ in range(2)]
        equal = report_on(sides).comparisons
        red += any(one.verdict is Verdict.REGRESSION for one in equal)
        sides[1][4] /= 1.05
        moved = report_on(sides).comparisons
        found += moved[4].verdict is Verdict.REGRESSION
    return red, found


def test_one_change_among_nine_metrics_is_found_and_nothing_is_not() -> None:
    red, found = outcomes()
    assert red <= 18  # 5 % of 200, and what chance may add once in a hundred
    assert found >= 105


def test_metrics_that_keep_their_noise_for_themselves_find_less(monkeypatch) -> None:
    monkeypatch.setattr(signed_rank, "moderated", lambda powers, _: powers)
    assert outcomes()[1] < 90


def test_a_joint_test_without_the_others_cries_wolf(monkeypatch) -> None:
    alone = signed_rank._step_down

    def careless(clear):
        return [Tail(tail.alone, tail.alone) for each in clear for tail in alone([each])]

    monkeypatch.setattr(signed_rank, "_step_down", careless)
    assert outcomes()[0] > 30


def test_a_slow_down_of_one_metric_shows_in_all_that_follow_it() -> None:
    slow = {name: noisy(1.06, 10, 0.01, 2) for name in ("ttft", "tpot", "itl", "e2el")}
    fast = {name: noisy(1.0, 10, 0.01) for name in slow}
    found = build_report(a_run(fast, slow)).comparisons
    assert {one.verdict for one in found} == {Verdict.REGRESSION}
    assert {one.test for one in found} == {"sign-flip"}


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
