"""One joint test of all timed metrics: exact, and deaf to what moves them together."""

import itertools

import numpy as np
import pytest

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
