"""Calls of the harness that the scheduler answers, maybe in another process than the workers.

What the harness calls on every worker passes through the engine's core, where the scheduler is.
Calls that switch and count mutants, or ask what is lost, are answered by the workers and there, as
if by one more worker; those that steer steps, or ask for the cache's size, are answered there
alone; those that switch a fix, plant a fault or clear the cache do their part there too. What the
scheduler's own probes count there joins the contract counts of the first worker.

Has the blocks of an engine's cache in the order in which it got them at its start.

Freed blocks go to the end of the queue of free ones, so which blocks a request gets
hangs on all that ran before. An engine that shall do the same again must begin with the same queue.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

from hybridwatch_engine.capacity import tell_capacity
from hybridwatch_engine.fixes.registry import switchboard
from hybridwatch_engine.mutants.board import mutant_board
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.planter import planter
from hybridwatch_engine.probes.counting import UNSUPPORTED, JointProbe
from hybridwatch_engine.probes.leaks import BlockLeaksProbe, find_held_blocks
from hybridwatch_engine.probes.prefix_cache import PrefixCacheProbe
from hybridwatch_engine.probes.progress import ProgressProbe
from hybridwatch_engine.step_gate import StepGate


def order_free_blocks(scheduler: Any) -> None:
    """Sort the free blocks by number; for a scheduler without requests, and nothing cached.

    A block that was lost stays lost: an engine that is handed it back would never run out of them.
    """
    from vllm.v1.core.kv_cache_utils import FreeKVCacheBlockQueue

    pool, held = scheduler.kv_cache_manager.block_pool, find_held_blocks(scheduler)
    # The first block stands for none, and is never free.
    free = [block for block in pool.blocks[1:] if block.block_id not in held]
    pool.free_block_queue = FreeKVCacheBlockQueue(free)


def count_losses(scheduler: Any) -> dict[str, int]:
    """Count what a scheduler holds.

    Returns:
        ``requests``: Those that have blocks or will have some: running, waiting, and finished ones
        whose blocks a connector still reads or a step in flight may still write. ``lost``: Blocks
        that are not free, though there are no such requests.
    """
    requests = len(scheduler.requests) + len(getattr(scheduler, "deferred_frees", ()))
    return {"requests": requests, "lost": 0 if requests else len(find_held_blocks(scheduler))}


def _empty_cache(scheduler: Any) -> None:
    """Forget what the prefix cache holds, which vLLM refuses to do once a block is lost."""
    if count_losses(scheduler)["lost"]:
        pool = scheduler.kv_cache_manager.block_pool
        pool.evict_blocks({block.block_id for block in pool.blocks})


def _answered_here_too(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    gates: dict[int, StepGate] = {}
    leaks = BlockLeaksProbe()
    probe = JointProbe((PrefixCacheProbe(), ProgressProbe(), leaks))

    def collective_rpc(
        core: Any, method: Any, timeout: Any = None, args: Any = (), kwargs: Any = None
    ) -> list[Any]:
        if method in _STEERING:
            gate = gates.get(id(core)) or gates.setdefault(id(core), StepGate(core.scheduler))
            return [_STEERING[method](gate, *args)]
        if method == "hybridwatch_capacity":
            return [tell_capacity(core.scheduler)]
        answers = original(core, method, timeout, args, kwargs)
        if method in _ANSWERED_TOO:
            return [*answers, _ANSWERED_TOO[method](core, *args)]
        if method in _DONE_TOO:
            _DONE_TOO[method](core.scheduler)
        if method in _SWITCHED_TOO:
            # The worker has said why, if it cannot be done.
            with suppress(ValueError):
                _SWITCHED_TOO[method](*args)
        if method == "hybridwatch_probe_start" and args[0] == _CONTRACT:
            leaks.start_on(core)
            probe.start()
        if method == "hybridwatch_probe_stop" and args[0] == _CONTRACT:
            return _with_counts(answers, probe.stop())
        return answers

    return collective_rpc


def _with_counts(
    answers: Sequence[Mapping[str, Any]], counts: dict[str, Any]
) -> list[dict[str, Any]]:
    """Add what was counted once to what each worker has counted: to the first, to the others 0."""
    unsupported = counts.pop(UNSUPPORTED, {})
    first, *others = ({**dict.fromkeys(counts, 0), **answer} for answer in answers)
    joined = {**first, **counts}
    if unsupported:
        joined[UNSUPPORTED] = {**first.get(UNSUPPORTED, {}), **unsupported}
    return [joined, *others]


_CONTRACT: Final = "contract"
"""The probe that counts broken rules, as the workers call it."""

_STEERING: dict[str, Callable[..., dict[str, int]]] = {
    "hybridwatch_open_steps": StepGate.open,
    "hybridwatch_steps": StepGate.state,
    "hybridwatch_remove_steps": StepGate.remove,
    "hybridwatch_token_budget": StepGate.set_token_budget,
}


_DONE_TOO: Final[dict[str, Callable[[Any], None]]] = {
    "hybridwatch_clear_rows": _empty_cache,
    "hybridwatch_clear_cache": order_free_blocks,
}


_ANSWERED_TOO: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "hybridwatch_losses": lambda core: count_losses(core.scheduler),
    "hybridwatch_mutate": lambda _, name: mutant_board("scheduler").switch(name),
    "hybridwatch_mutant_counts": lambda _: mutant_board("scheduler").counts(),
}


_SWITCHED_TOO: Final[dict[str, Callable[..., Any]]] = {
    "hybridwatch_switch": lambda *wanted: switchboard().switch(*wanted),
    "hybridwatch_plant": lambda faults: planter().plant(faults),
}


@cache
def scheduler_side() -> PatchSet:
    """The hook, made once per process."""
    from vllm.v1.engine.core import EngineCore

    return PatchSet(Patch(EngineCore, "collective_rpc", _answered_here_too))
