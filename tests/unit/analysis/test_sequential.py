"""Repeated looks: the level holds over all of them, and deciding early saves trials."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from hybridwatch.analysis.judge import adjust
from hybridwatch.analysis.power import (
    LEVEL,
    crossing,
    is_decided,
    level_of,
    nominal_level,
    open_metrics,
    schedule,
    timed,
)
from hybridwatch.analysis.report import build_report, report_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.records.run import InterimAnalyses
from tests.builders import Trials, a_run, noisy

LOOKS = schedule(7)
MARGIN = np.log(1.03)
OFTEN = InterimAnalyses(schedule(9), (9,))
"""Planned over six looks, decided at the first."""


# The looks


def test_looks_rise_by_half_from_the_first() -> None:
    assert LOOKS == (7, 11, 16, 24, 36, 54)
    assert all(later > earlier for earlier, later in pairwise(schedule(1)))


# The level


@pytest.mark.parametrize(
    ("looks", "boundary"), [(2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413), (10, 2.555)]
)
def test_boundary_is_the_published_one(looks: int, boundary: float) -> None:
    """Jennison and Turnbull 2000, table 2.1: equal steps, 0.05 over all looks."""
    level = nominal_level(tuple(range(1, looks + 1)))
    assert stats.norm.isf(level / 2) == pytest.approx(boundary, abs=1e-3)


def test_crossing_agrees_with_the_multivariate_normal_distribution() -> None:
    times = np.asarray(LOOKS, dtype=float)
    correlation = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    box = np.full(len(LOOKS), 2.4)
    inside = stats.multivariate_normal(cov=correlation).cdf(box, lower_limit=-box)
    assert crossing(LOOKS, 2.4) == pytest.approx(1 - inside, abs=2e-4)


def test_one_look_needs_no_lower_level() -> None:
    assert nominal_level((9,)) == LEVEL
    assert level_of(None) == LEVEL


def test_many_tests_need_a_lower_level_still() -> None:
    assert nominal_level(LOOKS, tests=20) < nominal_level(LOOKS, tests=9) < nominal_level(LOOKS)
    assert nominal_level(LOOKS, 0.01) < nominal_level(LOOKS)


def test_level_of_a_run_follows_from_its_plan_and_not_from_when_it_stopped() -> None:
    levels = {level_of(InterimAnalyses(LOOKS, made)) for made in ((), (7,), (7, 9), LOOKS)}
    assert levels == {nominal_level(LOOKS, tests=20)}


def test_six_looks_at_the_level_of_one_are_red_in_a_sixth_of_all_runs() -> None:
    assert crossing(LOOKS, stats.norm.isf(LEVEL / 2)) == pytest.approx(0.166, abs=1e-3)


# Simulated runs: one ratio per block, metric and run; a look tests all metrics together.


def a_a_runs(runs: int, metrics: int, common: float, seed: int) -> np.ndarray:
    """Logarithms of ratios of two equal sides; metrics share a part of their noise."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, 1, (runs, metrics, LOOKS[-1]))
    shared = rng.normal(0, 1, (runs, 1, LOOKS[-1]))
    return np.asarray(0.04 * (np.sqrt(common) * shared + np.sqrt(1 - common) * own))


def reds(ratios: np.ndarray, level: float) -> np.ndarray:
    """Which runs have any significant metric, look by look; size does not matter."""
    shown = []
    for blocks in LOOKS:
        seen = ratios[:, :, :blocks]
        p_values = stats.wilcoxon(seen, axis=-1, method="exact" if blocks < 20 else "approx").pvalue
        shown.append([min(adjust(list(one))) < level for one in p_values])
    return np.asarray(shown)


@pytest.mark.parametrize(("metrics", "common"), [(1, 0.0), (9, 0.0), (9, 0.5)])
def test_a_a_runs_are_red_at_any_look_in_at_most_one_of_twenty(metrics: int, common: float) -> None:
    ratios = a_a_runs(1000, metrics, common, seed=metrics + round(10 * common))
    level = level_of(InterimAnalyses(LOOKS, ()))
    assert reds(ratios, level).any(axis=0).mean() <= 0.05


@pytest.mark.parametrize(("metrics", "common"), [(1, 0.0), (9, 0.5)])
def test_the_level_of_one_look_would_cry_wolf_at_six(metrics: int, common: float) -> None:
    """The check above can fail: this is the defect that it is there for."""
    ratios = a_a_runs(500, metrics, common, seed=5)
    assert reds(ratios, LEVEL).any(axis=0).mean() > 0.1


def stopped_at(ratios: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Blocks at which single-metric runs stop, and whether they then call a difference."""
    blocks = np.full(len(ratios), LOOKS[-1])
    different = np.zeros(len(ratios), dtype=bool)
    running = np.ones(len(ratios), dtype=bool)
    for look in LOOKS:
        seen = ratios[:, 0, :look]
        found = stats.ttest_1samp(seen, 0.0, axis=-1).pvalue < level
        relevant = found & (np.abs(seen.mean(axis=-1)) > MARGIN)
        above = stats.ttest_1samp(seen, MARGIN, axis=-1, alternative="less").pvalue
        below = stats.ttest_1samp(seen, -MARGIN, axis=-1, alternative="greater").pvalue
        decided = running & (relevant | (np.maximum(above, below) < level))
        blocks[decided], different[decided] = look, relevant[decided]
        running &= ~decided
    return blocks, different & ~running


def test_a_change_is_found_with_fewer_trials_than_a_run_of_the_greatest_length_takes() -> None:
    slower = a_a_runs(2000, 1, 0.0, seed=11) + np.log(1.05)
    blocks, different = stopped_at(slower, level_of(InterimAnalyses(LOOKS, ())))
    fixed = stats.ttest_1samp(slower[:, 0], 0.0, axis=-1).pvalue < LEVEL
    assert fixed.mean() > 0.99
    assert different.mean() > 0.95
    assert blocks.mean() < 0.4 * LOOKS[-1]


def test_equal_sides_stop_early_and_are_called_the_same() -> None:
    blocks, different = stopped_at(
        a_a_runs(2000, 1, 0.0, seed=12), level_of(InterimAnalyses(LOOKS, ()))
    )
    assert different.mean() < 0.02
    assert blocks.mean() < 0.5 * LOOKS[-1]


def test_a_change_of_the_margin_is_called_equivalent_in_at_most_one_of_twenty() -> None:
    edge = a_a_runs(3000, 1, 0.0, seed=13) + MARGIN
    level = level_of(InterimAnalyses(LOOKS, ()))
    called = np.zeros(len(edge), dtype=bool)
    for look in LOOKS:
        seen = edge[:, 0, :look]
        called |= stats.ttest_1samp(seen, MARGIN, axis=-1, alternative="less").pvalue < level
    assert called.mean() <= 0.05


# Reports


def test_a_report_is_decided_when_no_timed_metric_is_open() -> None:
    same: dict[str, Trials] = {"tpot": noisy(1.0, 12, 0.002, 1), "accuracy.recall": "1111111"}
    other: dict[str, Trials] = {"tpot": noisy(1.0, 12, 0.002, 2), "accuracy.recall": "1111110"}
    report = build_report(a_run(same, other))
    assert [c.metric.id for c in timed(report)] == ["tpot"]
    assert is_decided(report)


def test_noise_leaves_a_report_open() -> None:
    report = build_report(a_run({"tpot": noisy(1.0, 7, 0.2, 1)}, {"tpot": noisy(1.0, 7, 0.2, 2)}))
    assert [c.metric.id for c in open_metrics(report)] == ["tpot"]
    assert not is_decided(report)


def test_nothing_timed_is_nothing_decided() -> None:
    contract = {"contract.any": (0.0,)}
    assert not is_decided(build_report(a_run(contract, contract)))


def seen_once_and_often(
    baseline: Trials, contender: Trials, metric: str = "tpot"
) -> tuple[Report, Report]:
    """The same trials as they are judged after one look, and after many."""
    run = a_run({metric: baseline}, {metric: contender})
    return build_report(run), build_report(replace(run, looks=OFTEN))


def test_a_run_of_many_looks_is_judged_by_their_level_wherever_it_is_read() -> None:
    """Significant at 0.05 but not at the level of six looks: the trap of looking often."""
    once, often = seen_once_and_often(noisy(1.0, 9, 0.04, 3), noisy(1.06, 9, 0.04, 8))
    (alone,), (repeated,) = once.comparisons, often.comparisons
    assert alone.p_value is not None
    assert level_of(often.looks) < alone.p_value < LEVEL
    assert alone.verdict is Verdict.REGRESSION
    assert repeated.p_value == alone.p_value
    assert repeated.p_adjusted is not None
    assert repeated.p_adjusted > LEVEL
    assert repeated.verdict is Verdict.INCONCLUSIVE
    assert often.looks == OFTEN


def test_sameness_too_is_held_against_the_level_of_the_looks() -> None:
    once, often = seen_once_and_often(noisy(1.0, 9, 0.015, 3), noisy(1.0, 9, 0.015, 10))
    (alone,), (repeated,) = once.comparisons, often.comparisons
    assert alone.equivalence_p is not None
    assert repeated.equivalence_p == pytest.approx(
        alone.equivalence_p * LEVEL / level_of(often.looks)
    )
    assert alone.verdict is Verdict.EQUIVALENT
    assert repeated.verdict is Verdict.INCONCLUSIVE


def test_answers_are_asked_for_once_and_judged_as_ever() -> None:
    sides = "1" * 40, "1" * 30 + "0" * 10
    once, often = seen_once_and_often(*sides, metric="accuracy.recall")
    assert often.comparisons == once.comparisons


def test_sides_of_two_runs_were_not_looked_at_together() -> None:
    run = a_run({"tpot": noisy(1.0, 9, 0.04, 3)}, looks=OFTEN)
    other = replace(run, id="2f0a9c3e")
    assert report_between(OneSide(run, 0), OneSide(other, 0)).looks is None
