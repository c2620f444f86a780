"""What several workers saw is told as one."""

from hybridwatch.engine.control import EngineControl


def test_what_the_probes_of_all_workers_saw_is_put_together(monkeypatch):
    seen = [
        {"steps": 3, "reads_per_step": [1, 2, 2], "sites": {"a.py:1 f": 4, "b.py:2 g": 1}},
        {"steps": 1, "reads_per_step": [5], "sites": {"b.py:2 g": 5}},
    ]
    monkeypatch.setattr(EngineControl, "_call", lambda *_: seen)
    assert EngineControl([]).stop_probe("host-sync") == {
        "steps": 4,
        "reads_per_step": [1, 2, 2, 5],
        "sites": {"a.py:1 f": 4, "b.py:2 g": 6},
    }
