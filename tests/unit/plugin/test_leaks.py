"""What an engine at rest has lost: blocks of the cache, states of requests; and planted losses.

A pool of a few lines stands for vLLM's; ``tests/engine/test_progress.py`` has the real one.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hybridwatch_engine.mutants.tally import Tally
from hybridwatch_engine.probes import leaks
from hybridwatch_engine.scheduler_side import _answered_here_too, count_losses
from hybridwatch_engine_lab.mutants.leaks import freed_block_lost, state_slot_lost

from tests.unit.plugin.modules import stand_in


class Queue:
    """Free blocks in their order."""

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks = list(blocks)

    def get_all_free_blocks(self) -> list[Any]:
        return self.blocks


class Pool:
    """Blocks of a cache, the first of which stands for none."""

    def __init__(self, blocks: int = 9) -> None:
        self.blocks = [
            SimpleNamespace(block_id=number, ref_cnt=0, is_null=number == 0)
            for number in range(blocks)
        ]
        self.free_block_queue = Queue(self.blocks[1:])
        self.evicted: set[int] = set()

    def take(self, blocks: int) -> list[Any]:
        queue = self.free_block_queue.blocks
        taken = [queue.pop(0) for _ in range(blocks)]
        for block in taken:
            block.ref_cnt += 1
        return taken

    def free_blocks(self, ordered_blocks: Any) -> None:
        for block in ordered_blocks:
            block.ref_cnt -= 1
            if not block.ref_cnt and not block.is_null:
                self.free_block_queue.blocks.append(block)

    def evict_blocks(self, block_ids: set[int]) -> None:
        self.evicted |= block_ids


def a_core(pool: Pool) -> Any:
    manager = SimpleNamespace(block_pool=pool)
    return SimpleNamespace(scheduler=SimpleNamespace(kv_cache_manager=manager, requests={}))


def started(core: Any) -> leaks.BlockLeaksProbe:
    probe = leaks.BlockLeaksProbe()
    probe.start_on(core)
    probe.start()
    return probe


def test_blocks_that_come_back_are_not_lost():
    pool = Pool()
    probe = started(a_core(pool))
    pool.free_blocks(reversed(pool.take(5)))
    assert probe.stop() == {"blocks_leaked": 0}


def forgotten(pool: Pool) -> None:
    pool.take(2)


def unqueued(pool: Pool) -> None:
    for block in pool.take(2):
        block.ref_cnt = 0


def freed_twice(pool: Pool) -> None:
    for block in pool.take(2):
        pool.free_blocks([block, block])


@pytest.mark.parametrize("defect", [forgotten, unqueued, freed_twice])
def test_a_block_that_is_neither_free_nor_cached_is_lost(defect):
    pool = Pool()
    probe = started(a_core(pool))
    defect(pool)
    assert probe.stop() == {"blocks_leaked": 2}


def test_a_trial_answers_for_its_own_losses():
    pool = Pool()
    core = a_core(pool)
    pool.take(3)
    probe = started(core)
    pool.take(1)
    assert probe.stop() == {"blocks_leaked": 1}
    probe.start()
    assert probe.stop() == {"blocks_leaked": 0}
    assert count_losses(core.scheduler) == {"requests": 0, "lost": 4}


def test_a_pool_of_another_kind_is_not_watched():
    probe = started(SimpleNamespace(scheduler=SimpleNamespace()))
    assert "kv_cache_manager" in probe.stop()["unsupported"]["blocks_leaked"]


@pytest.fixture
def queue(monkeypatch):
    """A package vllm with the queue of free blocks alone."""
    stand_in(monkeypatch, "vllm.v1.core.kv_cache_utils", FreeKVCacheBlockQueue=Queue)


def test_no_block_that_is_lost_is_handed_back(queue):
    """A fuzzer brings the blocks into their first order between two cases."""
    pool = Pool()
    core = a_core(pool)
    lost, *others = pool.take(4)
    pool.free_blocks(reversed(others))
    _answered_here_too(lambda *_: [{}])(core, "hybridwatch_clear_cache")
    assert [one.block_id for one in pool.free_block_queue.blocks] == [2, 3, 4, 5, 6, 7, 8]
    assert count_losses(core.scheduler)["lost"] == lost.block_id == 1


def test_the_cache_is_emptied_although_blocks_are_lost():
    """vLLM's own reset refuses, and rightly so while there are requests."""
    pool = Pool()
    core = a_core(pool)
    call = _answered_here_too(lambda *_: [{"requests": 0}])
    call(core, "hybridwatch_clear_rows")
    assert not pool.evicted
    pool.take(1)
    core.scheduler.requests = {"one": None}
    call(core, "hybridwatch_clear_rows")
    assert not pool.evicted
    core.scheduler.requests = {}
    call(core, "hybridwatch_clear_rows")
    assert pool.evicted == set(range(9))


def test_the_scheduler_says_what_it_holds_and_for_whom():
    core = a_core(Pool())
    core.scheduler.kv_cache_manager.block_pool.take(2)
    core.scheduler.requests = {"finished, and read by another engine": None}
    core.scheduler.deferred_frees = [(7, [])]
    worker = {"requests": 0, "lost": 0}
    call = _answered_here_too(lambda *_: [worker])
    assert call(core, "hybridwatch_losses") == [worker, {"requests": 2, "lost": 0}]
    core.scheduler.requests, core.scheduler.deferred_frees = {}, []
    assert call(core, "hybridwatch_losses") == [worker, {"requests": 0, "lost": 2}]


def test_one_freed_block_in_so_many_is_lost():
    pool, tally = Pool(), Tally()
    free = freed_block_lost(lambda pool, blocks: Pool.free_blocks(pool, blocks), tally, every=3)
    probe = started(a_core(pool))
    shared = pool.take(1)
    shared[0].ref_cnt += 1
    free(pool, [*pool.take(5), *shared, pool.blocks[0]])  # one that others need; one of none
    free(pool, [*pool.take(1), *shared])
    assert (tally.reached, tally.changed) == (7, 2)
    assert probe.stop() == {"blocks_leaked": 2}


class StatesV2:
    """Numbered places for requests."""

    def __init__(self) -> None:
        self.max_num_reqs = 4
        self.free_indices = [0, 1, 2, 3]
        self.index_to_req_id: dict[int, str] = {}

    def add(self, request: str) -> None:
        self.index_to_req_id[self.free_indices.pop()] = request

    def remove_request(self, request: str) -> int | None:
        for place, name in self.index_to_req_id.items():
            if name == request:
                del self.index_to_req_id[place]
                self.free_indices.append(place)
                return place
        return None


class RunnerV2:
    def __init__(self) -> None:
        self.req_states = StatesV2()

    def execute_model(self, *, come: str = "", go: str = "") -> None:
        if come:
            self.req_states.add(come)
        if go:
            self.req_states.remove_request(go)


class RunnerV1:
    def __init__(self) -> None:
        self.requests: dict[str, Any] = {}
        self.input_batch = SimpleNamespace(req_id_to_index={})

    def execute_model(self, *, come: str = "", go: str = "") -> None:
        if come:
            self.requests[come] = self.input_batch.req_id_to_index[come] = 0
        if go:
            self.input_batch.req_id_to_index.pop(go)
            if go != "kept":
                self.requests.pop(go)


@pytest.fixture
def states(monkeypatch):
    """A probe that watches the steps of both runners."""
    functions = (RunnerV1, "execute_model"), (RunnerV2, "execute_model")
    monkeypatch.setattr(leaks, "steps", lambda: functions)
    probe = leaks.RequestStatesProbe()
    probe.start()
    yield probe
    probe.stop()


@pytest.mark.parametrize("kind", [RunnerV1, RunnerV2])
def test_requests_that_go_leave_nothing(states, kind):
    runner = kind()
    for name in ("a", "b"):
        runner.execute_model(come=name)
    for name in ("a", "b"):
        runner.execute_model(go=name)
    assert states.stop() == {"request_states_leaked": 0}


def test_an_engine_without_steps_has_lost_nothing(states):
    assert states.stop() == {"request_states_leaked": 0}


def test_a_state_that_runner_v1_keeps_is_counted(states):
    runner = RunnerV1()
    runner.requests["kept before"] = 0
    runner.execute_model(come="kept")
    runner.execute_model(go="kept")
    assert states.stop() == {"request_states_leaked": 1}


def test_a_slot_that_runner_v2_loses_is_counted(states, monkeypatch):
    tally = Tally()
    lossy = state_slot_lost(StatesV2.remove_request, tally, every=2)
    monkeypatch.setattr(StatesV2, "remove_request", lossy)
    runner = RunnerV2()
    runner.execute_model(come="a", go="a")
    runner.execute_model(come="b", go="b")
    runner.execute_model(go="nobody")
    assert (tally.reached, tally.changed) == (2, 1)
    assert states.stop() == {"request_states_leaked": 1}
