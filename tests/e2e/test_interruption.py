"""Ctrl-C at any moment of the timed phase leaves no process behind. Real engine."""

import random

import pytest

from tests.e2e.interruption import interrupt
from tests.e2e.short_home import make_short_home

pytestmark = pytest.mark.engine

TIMED_S = 14.0
"""A few trials long, warm-up and pauses between trials included."""


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(2, marks=pytest.mark.timeout(900)),
        pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(50 * 300)]),
    ],
)
def test_interrupted_performance_phase_leaves_nothing(tmp_path, times):
    """The run alone and its whole process group in turn; fifty took about an hour."""
    home = make_short_home(tmp_path / "home")
    moments = random.Random()
    for number in range(times):
        delay_s, group = moments.uniform(0, TIMED_S), number % 2 == 1
        left = interrupt(home, tmp_path / "results", delay_s=delay_s, group=group)
        told = f"{number}: {delay_s:.2f} s into the phase, group: {group}: {left}"
        assert left.alive == [], told
        assert left.status == 130, told
    assert [path for path in (tmp_path / "results").rglob("*") if path.is_file()] == []
