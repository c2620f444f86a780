import math
from dataclasses import replace

import pytest

from hybridwatch.analysis.verdict import Comparison, Interval, Verdict
from hybridwatch.analysis.wording import numbers
from hybridwatch.metrics import find_metric


def a_comparison(metric: str, effect: float | None, interval: Interval | None = None) -> Comparison:
    return Comparison(
        metric=find_metric(metric),
        statistic="median",
        baseline=None,
        contender=None,
        effect=effect,
        interval=interval,
        p_value=None,
        p_adjusted=None,
        equivalence_p=None,
        minimum_detectable_effect=None,
        trials_needed=None,
        verdict=Verdict.INCONCLUSIVE,
        test="none",
    )


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        ("ttft", 0.0413, "41.3 ms"),
        ("ttft", 1.0, "1.00 s"),
        ("ttft", 0.0009996, "1000 \u00b5s"),
        ("ttft", 3.1e-4, "310 \u00b5s"),
        ("ttft", 0.0, "0 s"),
        ("ttft", 93.25, "93.2 s"),
        ("output_throughput", 812.4, "812 tok/s"),
        ("output_throughput", 12345.6, "12346 tok/s"),
        ("request_throughput", 4.167, "4.17 req/s"),
        ("host_syncs_per_step", 3.25, "3.25"),
        ("host_syncs_per_step", 12.0, "12"),
        ("accuracy.recall", 0.975, "97.5 %"),
        ("asv_memory.peak", 0.0, "0 bytes"),
        ("asv_memory.peak", 831.0, "831 bytes"),
        ("asv_memory.peak", 43_900_000.0, "43.9 MB"),
        ("ttft", None, "-"),
        ("ttft", math.nan, "-"),
    ],
)
def test_value(metric, value, shown) -> None:
    assert numbers.value(value, find_metric(metric)) == shown


@pytest.mark.parametrize(
    ("metric", "effect", "shown"),
    [
        ("ttft", 0.2012, "+20.1 %"),
        ("ttft", -0.0004, "0.0 %"),
        ("accuracy.recall", -0.04, "-4.0 points"),
        ("contract.x", 3.0, "+3"),
        ("contract.x", 0.0, "0"),
        ("ttft", None, "-"),
        ("ttft", math.inf, "-"),
    ],
)
def test_change(metric, effect, shown) -> None:
    assert numbers.change(a_comparison(metric, effect)) == shown


def test_interval() -> None:
    found = a_comparison("ttft", 0.2, Interval(0.15, 0.2534, 0.95))
    assert numbers.interval(found) == "+15.0 to +25.3"
    assert numbers.interval(replace(found, interval=None)) == ""
    assert numbers.interval(replace(found, interval=Interval(math.nan, 1.0, 0.95))) == ""


@pytest.mark.parametrize(
    ("p", "shown"), [(0.0004, "<0.001"), (0.03, "0.030"), (1.0, "1.000"), (None, "-")]
)
def test_p_value(p, shown) -> None:
    assert numbers.p_value(p) == shown
