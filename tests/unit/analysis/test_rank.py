"""The statistical rules against other implementations, by hand, and by simulation.

Trends and roots against SciPy, which takes too long to import for the verbs themselves.
"""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from hybridwatch.analysis import judge, paired_proportion, power, rank
from hybridwatch.analysis.paired_proportion import Pairs, root
from hybridwatch.analysis.rank import trend_p, typical_step
from hybridwatch.metrics import _ACCURACY_RELEVANCE
from tests.builders import noisy


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_rank_test_without_ties_is_scipys_exact_one(alternative) -> None:
    base, cont = noisy(1.0, 7, seed=1), noisy(1.03, 6, seed=2)
    wanted = stats.mannwhitneyu(cont, base, alternative=alternative, method="exact").pvalue
    assert rank.rank_p(base, cont, alternative) == pytest.approx(wanted)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_rank_test_with_ties_is_the_full_permutation_test(alternative) -> None:
    base, cont = (1.0, 2.0, 2.0, 3.0, 4.0), (2.0, 3.0, 3.0, 5.0, 5.0)
    every = stats.PermutationMethod(n_resamples=10_000)
    wanted = stats.mannwhitneyu(cont, base, alternative=alternative, method=every).pvalue
    assert rank.rank_p(base, cont, alternative) == pytest.approx(wanted)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("digits", [1, 9])
def test_rank_test_of_many_trials_is_scipys_approximation(alternative, digits) -> None:
    base, cont = ([round(value, digits) for value in noisy(10.0, n, seed=n)] for n in (40, 33))
    wanted = stats.mannwhitneyu(cont, base, alternative=alternative, method="asymptotic").pvalue
    assert rank.rank_p(base, cont, alternative) == pytest.approx(wanted, rel=1e-12)


def test_rank_test_of_equal_numbers_and_of_separated_ones() -> None:
    assert rank.rank_p((1.0,) * 7, (1.0,) * 7) == 1.0
    assert rank.rank_p((1.0,) * 7, (2.0,) * 7) == pytest.approx(2 / math.comb(14, 7))
    assert rank.rank_p((1.0,) * 100, (2.0,) * 100) < 1e-20


def test_equivalence_rises_with_distance_and_needs_positive_numbers() -> None:
    base = noisy(1.0, 7, 0.01, 1)
    near, far = (rank.equivalence_p(base, noisy(c, 7, 0.01, 2), 0.05) for c in (1.0, 1.04))
    assert near is not None
    assert far is not None
    assert near < 0.01 < far
    assert rank.equivalence_p((0.0, 1.0), (1.0, 1.0), 0.05) is None
    assert rank.equivalence_p((0.0,) * 7, (0.0,) * 7, 0.05) == 1 / math.comb(14, 7)


def test_equivalence_is_rarely_shown_at_the_margin_itself() -> None:
    rng = np.random.default_rng(5)
    shown = 0
    for _ in range(400):
        base, cont = np.exp(rng.normal(0, 0.02, (2, 7)))
        p = rank.equivalence_p(base, cont * 1.05, 0.05)
        shown += p is not None and p < 0.05
    assert shown <= 0.08 * 400  # 5 % and three standard errors


def test_interval_is_scipys_bootstrap() -> None:
    base, cont = sorted(noisy(1.0, 7, seed=1)), sorted(noisy(1.1, 9, seed=2))
    wanted = stats.bootstrap(
        (base, cont),
        lambda old, new, axis: np.median(new, axis=axis) / np.median(old, axis=axis) - 1,
        n_resamples=rank.RESAMPLES,
        confidence_level=rank.CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(rank.SEED),
    ).confidence_interval
    found = rank.ratio_interval(base, cont)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(wanted), rel=1e-12)


def test_interval_covers_is_repeatable_and_needs_four_trials() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(200):
        base, cont = np.exp(rng.normal(0, 0.03, (2, 7)))
        found = rank.ratio_interval(base, cont * 1.1)
        assert found is not None
        covered += found.low <= 0.1 <= found.high
    assert covered >= 0.9 * 200
    assert rank.ratio_interval((1.0, 2.0, 3.0), (1.0, 2.0, 3.0)) is None
    assert rank.ratio_interval((0.0, 1.0, 2.0, 3.0), (1.0,) * 4) is None
    base = noisy(1.0)
    assert rank.ratio_interval(base, base[::-1]) == rank.ratio_interval(base, base)


@pytest.mark.parametrize(("lost", "won"), [(9, 3), (3, 9), (20, 0), (1, 0)])
def test_mcnemar_is_half_of_statsmodels_two_sided_one(lost, won) -> None:
    from statsmodels.stats.contingency_tables import mcnemar  # late: it takes half a second

    table = [[100, lost], [won, 10]]
    assert paired_proportion.mcnemar_p(Pairs(200, lost, won)) == pytest.approx(
        mcnemar(table, exact=True).pvalue / 2
    )


@pytest.mark.parametrize("discordant", [0, 1, 7])
def test_mcnemar_of_a_balance_says_nothing(discordant) -> None:
    assert paired_proportion.mcnemar_p(Pairs(200, discordant, discordant)) == 1.0


def red(n: int, lost: float, won: float, times: int, seed: int) -> int:
    """How often a table with these shares is called a regression."""
    tables = np.random.default_rng(seed).multinomial(n, (lost, won, 1 - lost - won), size=times)
    pairs = [Pairs(n, int(one), int(other)) for one, other, _ in tables]
    return sum(
        paired_proportion.mcnemar_p(some) < 0.05 and some.difference < -_ACCURACY_RELEVANCE
        for some in pairs
    )


def test_two_points_are_found_by_the_questions_of_gsm8k() -> None:
    """6 % of answers flip at random; the drop is within them, or, harder, comes on top."""
    assert red(1319, 0.04, 0.02, 1000, 1) >= 0.85 * 1000
    assert red(1319, 0.05, 0.03, 1000, 2) >= 0.78 * 1000


@pytest.mark.parametrize("n", [50, 250, 1319])
@pytest.mark.parametrize("churn", [0.01, 0.06, 0.2])
def test_equal_engines_are_rarely_called_worse(n, churn) -> None:
    assert red(n, churn / 2, churn / 2, 600, 3) <= 0.068 * 600  # 5 % and two standard errors


@pytest.mark.parametrize(
    ("n", "lost", "won", "difference"),
    [(200, 9, 3, -0.02), (200, 3, 9, 0.05), (50, 5, 1, 0.3), (44, 1, 3, -0.1), (200, 0, 0, -0.02)],
)
def test_score_uses_the_likeliest_table_of_the_supposed_difference(
    n, lost, won, difference
) -> None:
    def unlikeliness(share: float) -> float:
        rest = 1 - 2 * share - difference
        cells = ((lost, share), (won, share + difference), (n - lost - won, rest))
        return -math.fsum(count * math.log(p) for count, p in cells if count)

    least, most = max(0.0, -difference) + 1e-12, (1 - difference) / 2 - 1e-12
    share = optimize.minimize_scalar(
        unlikeliness, bounds=(least, most), method="bounded", options={"xatol": 1e-12}
    ).x
    wanted = (won - lost - n * difference) / math.sqrt(
        n * (2 * share + difference * (1 - difference))
    )
    assert paired_proportion._score(Pairs(n, lost, won), difference) == pytest.approx(
        wanted, abs=1e-5
    )


def test_interval_of_answers_covers_the_truth() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(300):
        lost, won, _ = rng.multinomial(200, (0.06, 0.03, 0.91))
        found = paired_proportion.difference_interval(Pairs(200, int(lost), int(won)))
        covered += found.low <= -0.03 <= found.high
    assert covered >= 0.92 * 300


@pytest.mark.parametrize(("n", "lost", "won"), [(10, 0, 0), (10, 10, 0), (10, 0, 10), (3, 1, 1)])
def test_interval_of_extreme_tables_stays_inside(n, lost, won) -> None:
    pairs = Pairs(n, lost, won)
    found = paired_proportion.difference_interval(pairs)
    assert -1 <= found.low <= pairs.difference <= found.high <= 1


def test_equivalence_of_answers() -> None:
    assert paired_proportion.equivalence_p(Pairs(200, 0, 0), 0.02) < 0.05
    assert paired_proportion.equivalence_p(Pairs(100, 0, 0), 0.02) > 0.05
    assert paired_proportion.equivalence_p(Pairs(200, 8, 0), 0.02) > 0.5


def test_detectable_change_is_found_about_eight_times_in_ten() -> None:
    rng = np.random.default_rng(7)
    sizes = []
    for _ in range(200):
        base, cont = np.exp(rng.normal(0, 0.03, (2, 7)))
        sizes.append(power.detectable_change(base, cont, 0.0) or 0.0)
    change = 1 + float(np.median(sizes))
    found = 0
    for _ in range(400):
        base, cont = np.exp(rng.normal(0, 0.03, (2, 7)))
        found += rank.rank_p(base, cont * change) < 0.05
    assert 0.65 * 400 < found < 0.9 * 400


def test_power_says_nothing_where_it_cannot() -> None:
    assert power.detectable_change((1.0,) * 7, (1.0,) * 7, 0.03) is None
    assert power.detectable_change((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), 0.03) is None
    assert power.detectable_in_blocks((0.1,), 0.03) is None
    assert power.detectable_in_blocks((0.1,) * 12, 0.03) is None
    assert power.blocks_to_settle((0.1,) * 12, 0.03) is None
    assert power.trials_to_settle((1.0,), (2.0,), 0.05) is None
    assert power.trials_to_settle((0.0, 1.0), (2.0, 3.0), 0.05) is None


def test_trials_needed_grow_with_the_spread() -> None:
    needed = [
        power.trials_to_settle(noisy(1.0, 7, spread, 1), noisy(1.0, 7, spread, 2), 0.05) or 0
        for spread in (0.03, 0.06, 0.12)
    ]
    assert 10 <= needed[0] < needed[1] < needed[2]


def test_nothing_below_the_bound_is_called_detectable() -> None:
    sides = noisy(1.0, 20, 0.001, 1), noisy(1.0, 20, 0.001, 2)
    ratios = (np.log(sides[1]) - np.log(sides[0])).tolist()
    assert (power.detectable_change(*sides, 0.03) or 0.0) > 0.03
    assert (power.detectable_in_blocks(ratios, 0.03) or 0.0) > 0.03
    assert (power.detectable_difference(100_000, 10, 0.01) or 0.0) > 0.01


def test_control_keeps_the_order_and_takes_nothing() -> None:
    assert judge.adjust(()) == ()
    assert judge.adjust((0.04, 0.001, 0.5)) == pytest.approx((0.06, 0.003, 0.5))


def test_holm_agrees_with_statsmodels_and_is_never_below_the_other_control() -> None:
    from statsmodels.stats.multitest import multipletests  # late: it takes half a second

    assert judge.holm(()) == ()
    some = [*(np.random.default_rng(11).random(30) ** 3).tolist(), 0.002, 0.002]
    found = judge.holm(some)
    assert found == pytest.approx(multipletests(some, method="holm")[1])
    assert all(a >= b for a, b in zip(found, judge.adjust(some), strict=True))


@pytest.mark.parametrize("n", [3, 8, 33, 34, 60])
@pytest.mark.parametrize("digits", [1, 12])
def test_a_trend_is_kendalls_and_its_step_theils_and_sens(n, digits) -> None:
    rng = np.random.default_rng(n)
    for rise in (0.0, 0.05, -0.2):
        row = np.round(rng.normal(0, 0.5, n) + rise * np.arange(n), digits)
        wanted = stats.kendalltau(np.arange(n), row).pvalue
        assert trend_p(row) == pytest.approx(wanted, rel=1e-9)
        assert typical_step(row) == stats.theilslopes(row, np.arange(n)).slope


def test_a_straight_line_is_as_sure_as_its_length_allows() -> None:
    assert trend_p(range(7)) == pytest.approx(2 / math.factorial(7))
    assert typical_step((5.0, 3.0, 1.0)) == -2.0


@pytest.mark.parametrize("sign", [1, -1])
def test_a_root_is_found_from_either_sign(sign: int) -> None:
    def function(place: float) -> float:
        return sign * (math.exp(place) - 3)

    assert root(function, 0.0, 2.0) == pytest.approx(math.log(3), abs=1e-12)
    assert root(function, 0.0, 2.0) == pytest.approx(optimize.brentq(function, 0.0, 2.0))
