"""Copies of blocks: what each layer sees of them, before and after."""

from types import SimpleNamespace

import pytest
from hybridwatch_engine.probes.layers import BlockCopiesProbe

from tests.unit.plugin.modules import stand_in

BLOCKS = 3
COPY = "copy_kv_cache_blocks_inplace"


class Bytes:
    """As much of a tensor as the probe asks for: rows of bytes, of which a layer sees some."""

    def __init__(self, rows):
        self.rows = rows

    def unflatten(self, axis, shape):
        assert (axis, shape) == (0, (BLOCKS, -1))
        return self

    def view(self, kind):
        assert kind == "uint8"
        return self

    def __getitem__(self, at):
        return Bytes([list(self.rows[one]) for one in at])

    def __ne__(self, other):
        pairs = zip(self.rows, other.rows, strict=True)
        return Bytes([[a != b for a, b in zip(*rows, strict=True)] for rows in pairs])

    def flatten(self, axis):
        assert axis == 1
        return self

    def any(self, axis):
        assert axis == 1
        return SimpleNamespace(tolist=lambda: [any(row) for row in self.rows])


def whole(caches, num_blocks, copies):
    del num_blocks
    for cache in caches:
        for part in cache if isinstance(cache, list) else [cache]:
            for source, target in copies:
                part.rows[target] = list(part.rows[source])


def first_alone(caches, num_blocks, copies):
    whole(caches[:1], num_blocks, copies)


@pytest.fixture
def runner(monkeypatch):
    """Both model runners, of which V2 copies as a test says and V1 copies nothing."""
    stand_in(monkeypatch, "torch", uint8="uint8")
    stand_in(monkeypatch, "vllm.v1.worker.gpu_model_runner")
    return stand_in(monkeypatch, "vllm.v1.worker.gpu.model_runner")


def counts(runner, copy, caches, copies):
    vars(runner)[COPY] = copy
    probe = BlockCopiesProbe()
    probe.start()
    runner.copy_kv_cache_blocks_inplace(caches, BLOCKS, copies)
    found = probe.stop()
    assert vars(runner)[COPY] is copy
    return found


@pytest.mark.parametrize(("copy", "short"), [(whole, 0), (first_alone, 2)])
def test_a_copy_that_one_layer_misses_is_short(runner, copy, short):
    state, keys = Bytes([[1], [2], [3]]), Bytes([[1, 5, 6], [2, 7, 8], [3, 9, 9]])
    found = counts(runner, copy, [state, keys], [(0, 1), (0, 2)])
    assert found == {"blocks_copied": 2, "blocks_copied_short": short}


def test_a_layer_of_several_tensors_is_seen_whole(runner):
    conv, ssm = Bytes([[1], [2], [3]]), Bytes([[4], [5], [6]])
    found = counts(runner, whole, [[conv, ssm]], [(2, 0)])
    assert (conv.rows[0], ssm.rows[0]) == ([3], [6])
    assert found == {"blocks_copied": 1, "blocks_copied_short": 0}


def test_what_cannot_be_looked_at_is_said_and_copied_all_the_same(runner):
    done = []
    found = counts(runner, lambda *given: done.append(given), [object()], [(0, 1)])
    assert len(done) == 1
    assert set(found["unsupported"]) == {"blocks_copied", "blocks_copied_short"}
