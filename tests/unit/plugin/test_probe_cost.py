"""What the probe costs: it is on in its own stretches alone, and too dear only for a device."""

import pytest
from hybridwatch_engine_lab.studies import probe_cost, stepping
from hybridwatch_engine_lab.studies.stepping import StepStretch


class Probe:
    """Makes steps half as long again while it is on."""

    on = False

    def start(self):
        Probe.on = True

    def stop(self):
        Probe.on = False
        return {}


@pytest.fixture
def _engine(monkeypatch):
    def stretch(_engine, name, rows, *_):
        assert Probe.on is name.endswith("-on")
        return StepStretch((1.5 if Probe.on else 1.0,) * 3, 3 * rows)

    monkeypatch.setattr(stepping, "stretch", stretch)
    monkeypatch.setattr(probe_cost, "HostSyncProbe", Probe)


@pytest.mark.usefixtures("_engine")
def test_steps_with_the_probe_are_held_against_those_without():
    told = probe_cost.cost(None, rows=8, rounds=4)
    assert told["on"]["step_seconds"] == 1.5
    assert told["step_time"] == {"ratio": 1.5, "low": 1.5, "high": 1.5}
    assert not Probe.on


@pytest.mark.usefixtures("_engine")
@pytest.mark.parametrize(("cuda", "status"), [(True, 1), (False, 0)])
def test_above_the_goal_is_bad_news_on_a_device_only(monkeypatch, tmp_path, cuda, status):
    answer = tmp_path / "answer.json"
    monkeypatch.setattr(probe_cost, "own_answer", lambda: answer.open("w", encoding="utf-8"))
    monkeypatch.setattr(probe_cost, "start", lambda *_: None)
    monkeypatch.setattr(probe_cost, "device_name", lambda: "a device")
    monkeypatch.setattr(probe_cost, "runs_on_cuda", lambda: cuda)
    assert probe_cost.main(["models/tiny-hybrid", "--rounds", "2"]) == status
    assert '"goal": 1.01' in answer.read_text(encoding="utf-8")
