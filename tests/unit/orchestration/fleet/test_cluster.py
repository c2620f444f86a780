"""Whether a host may measure: hosts that lie are caught, honest ones are not."""

import random

import pytest

from hybridwatch.orchestration.fleet.cluster import HealthReport, judge_health
from hybridwatch.orchestration.fleet.job import HostKind
from hybridwatch.orchestration.fleet.measuring import probe

BED = HostKind(name="h100", expect={"driver": "570.1"})


def report(
    speed: float = 1.0, seed: int = 1, other_half: float = 1.0, driver="570.1"
) -> HealthReport:
    """Times as a machine with a little company has them: most near the fastest."""
    drawn = random.Random(seed)
    sides = [
        [0.01 * speed * factor * (1 + drawn.expovariate(100)) for _ in range(60)]
        for factor in (1.0, other_half)
    ]
    return HealthReport({"driver": driver}, (sides[0], sides[1]))


PAST = [0.0100, 0.0101, 0.0100]


def test_a_host_as_declared_and_as_fast_as_before_may_measure() -> None:
    assert all(judge_health(report(seed=seed), [BED], PAST, ()).passed for seed in range(100))


@pytest.mark.parametrize(
    ("shown", "expect", "told"),
    [
        (report(driver="999"), BED.expect, "driver: expected 570.1, found 999 (testbed h100)"),
        (report(), {"rack": "7"}, "rack: expected 7, found none (testbed h100)"),
        (HealthReport({"driver": "570.1"}), BED.expect, "it timed no calibration kernel"),
        (report(other_half=1.1), BED.expect, "noisy: "),
    ],
)
def test_why_a_host_may_not_measure_is_reported(shown, expect, told) -> None:
    found = judge_health(shown, [HostKind(name="h100", expect=expect)], PAST, ())
    assert found.reason.startswith(told)
    assert found.again is told.endswith(": ")


def test_a_host_slower_by_8_percent_is_found_every_time() -> None:
    found = [judge_health(report(1.08, seed), [BED], PAST, ()) for seed in range(100)]
    assert all(one.reason.startswith("slower: ") and one.again for one in found)


def test_a_host_without_a_past_is_held_against_others_of_its_kind() -> None:
    assert judge_health(report(1.08), [BED], (), (0.01, 0.01)).passed
    assert "other hosts of its kind" in judge_health(report(1.08), [BED], (), (0.01,) * 3).reason


def test_this_machine_shows_facts_and_times() -> None:
    found = probe()
    assert {"hybridwatch", "testbed", "kernel", "driver", "cores"} <= found.facts.keys()
    assert found.kernel_s is not None
    assert 0 < found.kernel_s < 10
    assert len(found.sides[0]) == len(found.sides[1]) >= 10


@pytest.mark.parametrize("halves", [((), ()), ((0.01,), ())])
def test_no_ratio_is_made_of_nothing(halves) -> None:
    assert HealthReport({}, halves).a_a is None
