"""Trends and roots against SciPy, which takes too long to import for the verbs themselves."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from hybridwatch.analysis.paired_proportion import root
from hybridwatch.analysis.rank import trend_p, typical_step


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
