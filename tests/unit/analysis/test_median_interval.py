"""What asv keeps of a benchmark by default is judged: a median with its interval, or one number."""

import math

import numpy as np
import pytest

from hybridwatch.analysis.judge import judge_together
from hybridwatch.analysis.rank import change_between
from hybridwatch.analysis.report import Terms, report_between
from hybridwatch.analysis.run_noise import FEWEST_RUNS, noise_between
from hybridwatch.analysis.subject import OneSide
from hybridwatch.analysis.verdict import Comparison, Interval, Verdict
from hybridwatch.reports.reason_text import because
from tests.builders import an_asv_side

TIME = "asv_time.time_a"
COUNT = "asv_number.track_syncs"


def judged(old: OneSide, new: OneSide, noise: float | None = None) -> Comparison:
    metric = new.run.trials[0].samples[0].metric
    terms = Terms(noise={} if noise is None else {(metric, "median"): noise})
    (found,) = report_between(old, new, terms).comparisons
    return found


def other(value: float, within: float | None = 0.01, metric: str = TIME) -> OneSide:
    return an_asv_side(value, within, metric, id="22222222")


@pytest.mark.parametrize(
    ("new", "within", "verdict"),
    [
        (0.015, 0.01, Verdict.REGRESSION),
        (0.2748, 0.01, Verdict.REGRESSION),
        (0.005, 0.01, Verdict.IMPROVEMENT),
        (0.013, 0.01, Verdict.INCONCLUSIVE),
        (0.015, 0.5, Verdict.INCONCLUSIVE),
        (0.01, 0.0001, Verdict.INCONCLUSIVE),
    ],
)
def test_a_default_file_is_decided_where_neither_its_run_nor_the_next_explains(
    new: float, within: float, verdict: Verdict
) -> None:
    found = judged(an_asv_side(0.01, 0.01), other(new, within))
    assert found.verdict is verdict
    assert found.relevance == pytest.approx(0.4)
    doubts = " ".join(found.doubts)
    assert "8.0 % is assumed, so only a change beyond 40.0 % (5 times that) counts" in doubts
    assert "asv run --record-samples" in doubts
    assert "--trials" not in doubts


def test_noisier_runs_in_the_store_raise_the_bound_and_quieter_ones_do_not_lower_it() -> None:
    old, new = an_asv_side(0.01, 0.01), other(0.015)
    assert judged(old, new, 0.001).verdict is Verdict.REGRESSION
    assert judged(old, new, 0.001).relevance == pytest.approx(0.4)
    noisier = judged(old, new, 0.12)
    assert noisier.verdict is Verdict.INCONCLUSIVE
    assert any("scatter by 12.0 %" in doubt for doubt in noisier.doubts)


def test_many_benchmarks_need_a_larger_change_each() -> None:
    old, new = an_asv_side(0.01, 0.01), other(0.0142)
    alone = judged(old, new)
    assert alone.verdict is Verdict.REGRESSION
    calm = judged(old, other(0.01))
    assert alone.p_value is not None
    many, _ = judge_together([alone, *[calm] * 60])
    assert many[0].verdict is Verdict.INCONCLUSIVE


def test_a_time_without_an_interval_is_not_tested() -> None:
    found = judged(an_asv_side(0.01, None), other(0.2))
    assert (found.verdict, found.p_value) == (Verdict.INCONCLUSIVE, None)
    assert found.trials_needed is None
    assert any("--record-samples, and without --quick" in doubt for doubt in found.doubts)


def test_the_errors_are_recovered_from_the_arms_that_face_each_other() -> None:
    lopsided = Interval(0.99, 1.2, 0.99), Interval(1.5 * 0.99, 1.5 * 1.2, 0.99)
    up = change_between(1.0, 1.5, lopsided, 0.0)
    reach = 2.5758293
    assert up.below == pytest.approx(math.hypot(math.log(1 / 0.99), math.log(1.2)) / reach, 1e-3)
    assert up.interval.low < 0.5 < up.interval.high
    noisy = change_between(1.0, 1.5, lopsided, 0.08)
    assert noisy.below == pytest.approx(math.hypot(up.below, 0.08 * math.sqrt(2)))


def test_equal_medians_are_called_changed_as_often_as_promised() -> None:
    rng = np.random.default_rng(4)
    red = 0
    for _ in range(4000):
        old, new = np.exp(0.02 * rng.standard_normal(2))
        # Intervals of 99 % of medians whose logarithms have a deviation of 2 %.
        limits = [Interval(x * math.exp(-0.0515), x * math.exp(0.0515), 0.99) for x in (old, new)]
        red += change_between(old, new, (limits[0], limits[1]), 0.0).p_value < 0.05
    assert red / 4000 == pytest.approx(0.05, abs=0.012)


def history(*values: float) -> list[OneSide]:
    return [an_asv_side(one, None, COUNT, id=f"{at:08x}") for at, one in enumerate(values)]


def counted(*earlier: float, old: float = 0.0, new: float = 5.0) -> Comparison:
    sides = an_asv_side(old, None, COUNT), other(new, None, COUNT)
    (found,) = report_between(
        *sides, Terms(noise=noise_between(history(*earlier), *sides))
    ).comparisons
    return found


def test_one_count_a_side_says_nothing_of_the_next_one() -> None:
    found = counted()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("nothing says whether its number comes out again" in one for one in found.doubts)
    assert not any("--trials" in one for one in found.doubts)


def test_a_count_that_earlier_runs_repeat_is_exact() -> None:
    found = counted(*[0.0] * FEWEST_RUNS)
    assert (found.verdict, found.test) == (Verdict.REGRESSION, "exact")
    assert "20 earlier runs" in found.assumption
    assert "counts 5 where each of the baseline's counts 0" in because(found, 0.05)
    assert counted(*[3.0] * 9, *[0.0] * FEWEST_RUNS, new=0.0).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize(
    "earlier",
    [(0.0,) * (FEWEST_RUNS - 1), (0.0, 1.0) * FEWEST_RUNS, (2.0,) * FEWEST_RUNS + (3.0, 2.0)],
)
def test_a_count_that_strays_or_has_few_runs_is_not(earlier: tuple[float, ...]) -> None:
    found = counted(*earlier, old=2.0, new=3.0)
    assert (found.verdict, found.noise) == (Verdict.INCONCLUSIVE, None)
