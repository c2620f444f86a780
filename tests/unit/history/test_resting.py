"""Runs that stay whole when a store is pruned: somebody or something rests on them."""

from datetime import timedelta

import pytest

from hybridwatch.history.alerts import find_alerts
from hybridwatch.history.resting import old_runs, runs_that_stay
from hybridwatch.orchestration.nightly.checkout import checkout_here
from tests.builders import STARTED
from tests.unit.database.stores import add, opened

NIGHTS, STEP = 24, 12


@pytest.fixture
def results(tmp_path):
    """Nights of two builds; from one on the contender is slower."""
    for night in range(NIGHTS):
        add(tmp_path, night, slower=1.0 if night < STEP else 1.4)
    return tmp_path


def stays(results, alerts=()):
    index = opened(results).index
    return runs_that_stay(results, index, alerts, lambda _done, _all: None)


def test_the_runs_on_both_sides_of_a_change_stay(results):
    found = stays(results)
    assert found[f"{STEP - 1:08x}"] == found[f"{STEP:08x}"] == "ttft changed beside it"
    assert len(found) == 2


def test_without_a_change_none_stays(tmp_path):
    for night in range(NIGHTS):
        add(tmp_path, night)
    assert stays(tmp_path) == {}


def test_the_runs_of_an_open_alert_stay(results):
    now = STARTED + timedelta(days=NIGHTS)
    alerts = find_alerts(results, opened(results).index, checkout_here(), now)
    assert {alert.opened_by.run_id for alert in alerts} <= stays(results, alerts).keys()
    assert f"{NIGHTS - 1:08x}" in stays(results, alerts)


def test_every_run_is_listed_once_with_its_builds(results):
    runs = old_runs(opened(results).index)
    assert len({run.run for run in runs}) == len(runs) == NIGHTS
    assert {len(run.like) for run in runs} == {5}
    assert runs[0].started_at == STARTED
