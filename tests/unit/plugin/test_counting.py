"""A probe never raises into the engine: what it cannot watch it says, and the step goes on."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe, JointProbe, UnsupportedError
from hybridwatch_engine.probes.layers import ReplayedLayersProbe
from hybridwatch_engine.probes.state_slots import MambaGroup, SlotPlace
from hybridwatch_engine.replays import REPLAYS, Replay


class Recorder:
    def __init__(self, name, log):
        self._name, self._log = name, log

    def start(self):
        self._log.append(f"start {self._name}")

    def stop(self):
        self._log.append(f"stop {self._name}")
        return {self._name: len(self._log)}


def test_all_begin_in_order_and_the_last_one_ends_first():
    log: list[str] = []
    probe = JointProbe((Recorder("first", log), Recorder("second", log)))
    probe.start()
    assert probe.stop() == {"first": 4, "second": 3}
    assert log == ["start first", "start second", "stop second", "stop first"]


@dataclass(slots=True)
class Counts:
    steps: int = 0
    long_steps: int = 0


@dataclass(slots=True)
class OtherCounts:
    others: int = 3


class Engine:
    def step(self, batch):
        return f"stepped {batch}"


class BatchProbe(CountingProbe[Counts]):
    """InterimAnalyses at a field that not every batch has."""

    def __init__(self):
        super().__init__(Counts)

    def _make_hooks(self):
        return PatchSet(Patch(Engine, "step", self._see))

    def _see(self, original):
        def step(engine, batch):
            self._watch(self._count, batch)
            return original(engine, batch)

        return step

    def _count(self, batch):
        if batch == "strange":
            raise UnsupportedError("expected rows, found something strange")
        self._counts.steps += 1
        self._counts.long_steps += batch.rows > 4


class OtherProbe(CountingProbe[OtherCounts]):
    def __init__(self):
        super().__init__(OtherCounts)

    def _make_hooks(self):
        return PatchSet()


class ProbeOfAnotherRelease(OtherProbe):
    def _make_hooks(self):
        return PatchSet(Patch(Engine, "renamed_since", lambda original: original))


@pytest.fixture
def probe():
    started = BatchProbe()
    started.start()
    yield started
    started.stop()


def batch(rows):
    return SimpleNamespace(rows=rows)


def test_probe_that_meets_what_it_does_not_know_leaves_the_step_alone(probe):
    assert Engine().step("strange") == "stepped strange"
    assert Engine().step(None) == "stepped None"


def test_unsupported_counts_are_named_with_the_reason_and_not_told_as_zero(probe):
    Engine().step(batch(9))
    Engine().step("strange")
    reason = "expected rows, found something strange"
    assert probe.stop() == {"unsupported": {"steps": reason, "long_steps": reason}}


def test_unforeseen_error_is_reported_in_one_line_with_its_place(probe):
    Engine().step(SimpleNamespace(rows="nine\nrows"))
    told = probe.stop()["unsupported"]["steps"]
    assert told.startswith("TypeError: ")
    assert "(test_counting.py:" in told
    assert "\n" not in told


def test_probe_counts_from_zero_again_after_it_was_unsupported(probe):
    Engine().step("strange")
    probe.stop()
    probe.start()
    Engine().step(batch(9))
    assert probe.stop() == {"steps": 1, "long_steps": 1}


def test_release_that_has_renamed_a_hook_is_unsupported():
    probe = ProbeOfAnotherRelease()
    probe.start()
    assert "renamed_since" in probe.stop()["unsupported"]["others"]


def test_one_unsupported_probe_leaves_the_counts_of_the_others(probe):
    joint = JointProbe((probe, OtherProbe()))
    joint.start()
    Engine().step("strange")
    told = joint.stop()
    assert told["others"] == 3
    assert set(told["unsupported"]) == {"steps", "long_steps"}


def test_layers_that_keep_three_tensors_for_a_request_are_unsupported():
    """As those of Kimi-Linear: the inputs of three convolutions, and a state."""
    group = MambaGroup("a", None, None, (SimpleNamespace(kv_cache=("q", "k", "v", "state")),), 1)
    with pytest.raises(UnsupportedError, match="found 4 tensors kept for each request"):
        group.content(SlotPlace(0, 0, 0))


class GDNAttentionMetadata:
    """Called as vLLM's own."""


class OtherMetadata:
    """Of a family that nobody here knows."""


@pytest.mark.parametrize(
    ("layers", "replayed"),
    [
        ({}, {}),
        (
            {"a": GDNAttentionMetadata(), "b": GDNAttentionMetadata(), "c": OtherMetadata()},
            {"gated_delta_net": 4, "OtherMetadata": 2},
        ),
    ],
)
def test_replays_say_how_many_layers_of_which_kind_they_are_made_of(layers, replayed):
    probe = ReplayedLayersProbe()
    probe.start()
    for observer in REPLAYS.observers:
        for _ in range(2):
            observer(Replay(layers, layers, tuple(layers)))
    assert probe.stop() == {"graphs_replayed": 2, "layers_replayed": replayed}
    assert REPLAYS.observers == []
