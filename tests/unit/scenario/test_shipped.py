"""What every scenario that comes with the suite keeps to."""

import pytest

from hybridwatch.home import home
from hybridwatch.scenario.load import find
from hybridwatch.scenario.scenario import Scenario

SHIPPED = find(home() / "scenarios", [])
ENOUGH = 10
"""Trials a side of a timed phase. Five agree by chance once in 126 times, which the adjustment for
some ten tests of a report takes away, however large the change."""


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda scenario: scenario.id)
def test_no_timed_phase_has_too_few_trials_to_be_decided(scenario: Scenario) -> None:
    assert scenario.trials.performance >= ENOUGH
    assert scenario.trials.host_sync >= ENOUGH
