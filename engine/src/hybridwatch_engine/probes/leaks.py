"""What an engine at rest has lost: blocks of the cache, and states of requests.

Once no request is left, every block is free, cached or not: no request refers to it, and it waits
in the queue of free ones (vLLM, ``v1/core/block_pool.py``). Blocks of Mamba groups are of the same
pool. A block that does not wait there goes to no other request, and an engine that loses one now
and then serves no request in the end. Only what was lost while a probe was on counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hybridwatch_engine.model_runner import is_v2, steps
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe


def find_held_blocks(scheduler: Any) -> set[int]:
    """Number the blocks of a scheduler that are not free; the null block never is."""
    pool = scheduler.kv_cache_manager.block_pool
    free = {
        block.block_id
        for block in pool.free_block_queue.get_all_free_blocks()
        if block.ref_cnt == 0
    }
    return {block.block_id for block in pool.blocks if not block.is_null} - free


@dataclass(slots=True)
class BlockLeakCounts:
    """Totals since the probe was started.

    Attributes:
        blocks_leaked: Blocks that are not free at the end and were at the start. One that a
            transfer of a connector still reads counts, so wait for its end.
    """

    blocks_leaked: int = 0


class BlockLeaksProbe(CountingProbe[BlockLeakCounts]):
    """Counts the blocks that a scheduler does not get back while it is on."""

    def __init__(self) -> None:
        super().__init__(BlockLeakCounts)
        self._core: Any = None
        self._held: set[int] = set()

    def start_on(self, core: Any) -> None:
        """Choose the engine core whose scheduler is watched, before the start."""
        self._core = core

    def start(self) -> None:
        """Note what is held already."""
        super().start()
        self._held = self._watch(self._find_held) or set()

    def stop(self) -> dict[str, Any]:
        """Count what is held and was not at the start."""
        held = self._watch(self._find_held) or set()
        self._counts.blocks_leaked = len(held - self._held)
        return super().stop()

    def _find_held(self) -> set[int]:
        return find_held_blocks(self._core.scheduler)

    def _make_hooks(self) -> PatchSet:
        return PatchSet()


@dataclass(slots=True)
class RequestStateCounts:
    """Totals since the probe was started.

    Attributes:
        request_states_leaked: Places for the state of a request that a model runner has lost. Those
            of V2 are numbered: neither free nor a request's. V1 has a table, in which finished
            requests are left.
    """

    request_states_leaked: int = 0


class RequestStatesProbe(CountingProbe[RequestStateCounts]):
    """Counts the states that a model runner keeps for no request; started and stopped at rest."""

    def __init__(self) -> None:
        super().__init__(RequestStateCounts)
        self._runner: Any = None
        self._before = 0

    def stop(self) -> dict[str, Any]:
        """Count what is lost and was not before the first step."""
        if self._runner is not None:
            lost = self._watch(count_lost_states, self._runner) or 0
            self._counts.request_states_leaked = max(0, lost - self._before)
        return super().stop()

    def _forget(self) -> None:
        self._runner = None

    def _make_hooks(self) -> PatchSet:
        return PatchSet(*(Patch(*step, self._see_step) for step in steps()))

    def _see_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, *args: Any, **named: Any) -> Any:
            if self._runner is None:
                self._before = self._watch(count_lost_states, runner) or 0
                self._runner = runner
            return original(runner, *args, **named)

        return execute_model


def count_lost_states(runner: Any) -> int:
    """Count the states that a model runner, in which none is preempted, keeps for no request."""
    if not is_v2(runner):
        return len(runner.requests.keys() - runner.input_batch.req_id_to_index.keys())
    states = runner.req_states
    return int(states.max_num_reqs - len({*states.free_indices, *states.index_to_req_id}))
