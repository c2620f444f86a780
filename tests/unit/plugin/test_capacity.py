"""What an engine tells of its cache; ``tests/engine/test_decoding_rows.py`` asks real ones."""

from types import SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine import capacity
from hybridwatch_engine.planted import FAULTS, Planter
from hybridwatch_engine.scheduler_side import _answered_here_too

from tests.unit.plugin.modules import stand_in
from tests.unit.plugin.test_leaks import Pool, a_core


class MambaSpec:
    """A state of so many bytes a layer."""

    def __init__(self, size: int = 0) -> None:
        self.size = size

    def max_memory_usage_bytes(self, _config: Any) -> int:
        return self.size


@pytest.fixture
def core(monkeypatch) -> Any:
    """An engine core with nine blocks, of which a request as long as may be takes two."""
    stand_in(monkeypatch, "vllm.v1.kv_cache_interface", MambaSpec=MambaSpec)
    most = {"get_max_concurrency_for_kv_cache_config": lambda _, cache: cache.num_blocks / 2}
    stand_in(monkeypatch, "vllm.v1.core.kv_cache_utils", **most)
    pool = Pool()
    vars(pool)["get_num_free_blocks"] = lambda: len(pool.free_block_queue.blocks)
    found = a_core(pool)
    found.scheduler.vllm_config = SimpleNamespace(model_config=SimpleNamespace(max_model_len=1000))
    groups = (MambaSpec(70), ["a", "b", "c"]), (SimpleNamespace(), ["d"]), (MambaSpec(30), ["e"])
    found.scheduler.kv_cache_config = SimpleNamespace(
        num_blocks=9,
        kv_cache_groups=[SimpleNamespace(kv_cache_spec=s, layer_names=n) for s, n in groups],
    )
    return found


def told(core: Any) -> Any:
    [answer] = _answered_here_too(lambda *_: [{"by": "a worker"}])(core, "hybridwatch_capacity")
    return answer


def test_free_blocks_are_told_with_the_tokens_that_fit_and_the_bytes_of_a_state(core):
    assert told(core) == {"blocks": 8, "held": 0, "tokens": 4000, "state_bytes": 240}


def test_blocks_that_a_request_holds_are_not_free(core):
    core.scheduler.kv_cache_manager.block_pool.take(2)
    assert told(core) == {"blocks": 6, "held": 2, "tokens": 3000, "state_bytes": 240}


def test_a_release_that_keeps_its_cache_elsewhere_says_so_and_lives(core):
    del core.scheduler.kv_cache_config
    assert "kv_cache_config" in told(core)["error"]


def test_memory_is_given_back_where_the_c_library_can(monkeypatch):
    assert capacity.trim()
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace())
    assert not capacity.trim()


def test_a_fault_is_planted_where_the_scheduler_is(monkeypatch):
    """It may be in another process than the workers."""
    planted: list[list[str]] = []
    there = SimpleNamespace(plant=planted.append)
    monkeypatch.setattr("hybridwatch_engine.scheduler_side.planter", lambda: there)
    call = _answered_here_too(lambda *_: [{"planted": ["slow-step"]}])
    assert call(SimpleNamespace(), "hybridwatch_plant", args=(["slow-step"],)) == [
        {"planted": ["slow-step"]}
    ]
    assert planted == [["slow-step"]]


def test_a_fault_that_is_unknown_there_too_is_refused_by_the_worker_alone(monkeypatch):
    monkeypatch.setattr("hybridwatch_engine.scheduler_side.planter", lambda: Planter(FAULTS))
    call = _answered_here_too(lambda *_: [{"error": "no fault"}])
    assert call(SimpleNamespace(), "hybridwatch_plant", args=(["wat"],)) == [{"error": "no fault"}]
