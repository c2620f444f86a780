"""A check of a live engine from outside: nothing on the healthy one, and the fix that it lacks."""

import pytest

from hybridwatch_lab.server_check.runner import run_check
from tests.engine.conftest import HEALTHY, KNOWN_BAD

pytestmark = pytest.mark.engine
MINUTES = 0.25


@pytest.mark.long("a quarter of a minute of requests")
def test_a_healthy_engine_holds(pool):
    report = run_check(pool.make_ready(HEALTHY).server.url, MINUTES)
    assert not report.kill, report.kill.detail
    held = {one["name"] for one in report.whole["relations"] if one["outcome"] == "held"}
    assert {"company", "short", "parts"} <= held


@pytest.mark.long("a quarter of a minute of requests")
def test_an_engine_without_its_fix_is_found_out(pool):
    report = run_check(pool.make_ready(KNOWN_BAD).server.url, MINUTES)
    assert "company" in report.kill.metrics
    assert all(one["curl"] for each in report.whole["relations"] for one in each["breaks"])
