"""What several workers saw is told as one."""

import pytest

from hybridwatch.engines.control import EngineControl
from hybridwatch.errors import BuildError


def test_what_the_probes_of_all_workers_saw_is_put_together(monkeypatch):
    seen = [
        {"steps": 3, "reads_per_step": [1, 2, 2], "sites": {"a.py:f:1": 4, "b.py:g:2": 1}},
        {"steps": 1, "reads_per_step": [5], "sites": {"b.py:g:2": 5}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("host-sync") == {
        "steps": 4,
        "reads_per_step": [1, 2, 2, 5],
        "sites": {"a.py:f:1": 4, "b.py:g:2": 6},
    }


def test_counts_by_two_names_are_added_name_by_name(monkeypatch):
    seen = [
        {"site_kinds": {"a": {"item": 2, "copy": 1}}, "other_threads": {"waits": 1}},
        {"site_kinds": {"a": {"item": 1}, "b": {"event": 4}}, "other_threads": {"waits": 2}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("host-sync") == {
        "site_kinds": {"a": {"item": 3, "copy": 1}, "b": {"event": 4}},
        "other_threads": {"waits": 3},
    }


def test_count_that_one_worker_cannot_watch_is_known_of_none(monkeypatch):
    seen = [
        {"replays": 3, "states_off": 0},
        {"replays": 1, "unsupported": {"states_off": "expected two states"}},
        {"replays": 2, "unsupported": {"states_off": "expected two states"}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("contract") == {
        "replays": 6,
        "unsupported": {"states_off": "expected two states"},
    }


def test_every_worker_is_told_what_is_planted(monkeypatch):
    asked = []

    def call(_control, *words):
        asked.append(words)
        return [{"planted": ["slow-step"]}] * 2

    monkeypatch.setattr(EngineControl, "_call", call)
    EngineControl([]).plant(("slow-step",))
    assert asked == [("plant", ["slow-step"])]


def test_a_fault_that_a_worker_refuses_is_told(monkeypatch):
    answers = [{"planted": ["x"]}, {"error": "no fault 'x' to plant; known: slow-step"}]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: answers)
    with pytest.raises(BuildError, match="no fault 'x' to plant"):
        EngineControl([]).plant(("x",))
