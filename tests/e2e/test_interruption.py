"""SIGINT at any moment of the timed phase leaves no process behind, and no record."""

import random
import signal

import pytest

from tests.e2e.interruption import interrupt
from tests.e2e.short_home import make_short_home

MANY = 50
"""Tries before a release."""

TRY_S = 120
"""More than a try takes on a busy machine."""

PRETENDED_S, REAL_S = 3.0, 14.0
"""A few trials long, warm-up and pauses between trials included."""


def interrupt_often(folder, home, times, within_s):
    """The run alone and its whole process group in turn, each at a moment of its own."""
    moments = random.Random()
    for number in range(times):
        delay_s, group = moments.uniform(0, within_s), number % 2 == 1
        left = interrupt(home, folder / "results", delay_s=delay_s, group=group)
        told = f"{number}: {delay_s:.2f} s into the phase, group: {group}: {left}"
        assert left.alive == [], told
        assert left.status == 128 + signal.SIGINT, told
    assert [path for path in (folder / "results").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(3, marks=pytest.mark.timeout(600)),
        pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(MANY * TRY_S)]),
    ],
)
def test_interrupted_session_leaves_nothing(tmp_path, times):
    home = make_short_home(tmp_path / "home", pretended=True)
    interrupt_often(tmp_path, home, times, PRETENDED_S)


def test_engine_that_is_deaf_to_sigterm_is_gone_in_time(tmp_path, monkeypatch):
    monkeypatch.setenv("PRETEND_DEAF", "1")
    home = make_short_home(tmp_path / "home", pretended=True)
    interrupt_often(tmp_path, home, 1, PRETENDED_S)


@pytest.mark.engine
@pytest.mark.slow  # test_story.py stops a real engine; a pretended one shows moments and ways
@pytest.mark.timeout(MANY * TRY_S)
def test_interrupted_performance_phase_leaves_nothing(tmp_path):
    home = make_short_home(tmp_path / "home")
    interrupt_often(tmp_path, home, MANY, REAL_S)
