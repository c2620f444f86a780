"""What every scenario that comes with the suite keeps to."""

from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home

ENOUGH = 10
"""Trials a side of a timed phase. Five agree by chance once in 126 times, which the adjustment for
some ten tests of a report takes away, however large the change."""


def test_no_timed_phase_has_too_few_trials_to_be_decided() -> None:
    shipped = find(home() / "scenarios", [])
    few = {
        one.id: (one.trials.performance, one.trials.host_sync)
        for one in shipped
        if min(one.trials.performance, one.trials.host_sync) < ENOUGH
    }
    assert shipped
    assert few == {}
