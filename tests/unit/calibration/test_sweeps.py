"""The simulation of sweeps: easy curves are judged right, and the page says how it was made."""

import numpy as np
import pytest

from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.metrics import CURVE_AREA
from hybridwatch_lab.calibration.sweeps import CHANGES, even, page, simulated, slower, tilted


def verdict_of(report: Report) -> Verdict:
    return next(one.verdict for one in report.comparisons if one.metric.id == CURVE_AREA)


@pytest.mark.parametrize(
    ("pace", "verdict"), [(even, Verdict.EQUIVALENT), (slower(0.25), Verdict.REGRESSION)]
)
def test_what_is_plain_is_judged_right(pace, verdict):
    rng = np.random.default_rng(1)
    assert {verdict_of(simulated(pace, 0.01, rng)) for _ in range(5)} == {verdict}


def test_curves_that_cross_are_found_to():
    report = simulated(tilted, 0.01, np.random.default_rng(1))
    assert report.tradeoff is not None
    assert len(report.tradeoff.crossings) == 1


def test_equal_engines_seldom_have_a_place_where_one_is_above():
    rng = np.random.default_rng(2)
    reports = [simulated(even, 0.03, rng) for _ in range(40)]
    alarms = sum(bool(report.tradeoff and report.tradeoff.stretches) for report in reports)
    # Were each of the places tested at 5 % by itself, about one report in six would have some.
    assert alarms <= 5


def test_page_says_how_it_was_made_and_is_the_same_again():
    text = page(7, 1, lambda _line: None)
    assert "sweeps --seed 7 --reports 1 --write" in text
    assert text.count("\n| ") == 1 + 3 * len(CHANGES)
    assert page(7, 1, lambda _line: None) == text
