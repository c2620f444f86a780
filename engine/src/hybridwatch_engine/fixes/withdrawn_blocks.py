"""A request that is withdrawn from a step leaves nothing of that step in the prefix cache.

Beyond upstream (vllm#57580 is open).
"""

from collections.abc import Callable, Iterator
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_SCHEDULER = "v1/core/sched/scheduler.py"
_STEP = "Scheduler.schedule"
_PREEMPT = "Scheduler._preempt_request"


def probe(tree: SourceTree) -> Finding:
    """Look for a preemption that takes back what the step has put into the cache."""
    step, preempt = (tree.function(_SCHEDULER, name) for name in (_STEP, _PREEMPT))
    if step is None or preempt is None or not mentions(step, "preempted_req"):
        return Finding("not-applicable", f"{_SCHEDULER} preempts in another way")
    taken_back = [
        name for name in ("evict_blocks", "uncache_blocks", "rollback") if calls(preempt, name)
    ]
    if taken_back:
        return Finding("present", f"{_SCHEDULER}:{preempt.lineno} calls {taken_back[0]}")
    return Finding("lacking", f"{_SCHEDULER}:{preempt.lineno} frees blocks with their hashes")


def _apply() -> PatchSet:
    """Take blocks out of the prefix cache before the request that was to fill them is preempted."""
    from vllm.v1.core.sched.scheduler import Scheduler

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def preempt(scheduler: Any, request: Any, *args: Any, **kwargs: Any) -> None:
            manager = scheduler.kv_cache_manager
            if manager.enable_caching:
                manager.evict_blocks(set(_unwritten(manager.coordinator, request)))
            original(scheduler, request, *args, **kwargs)

        return preempt

    return PatchSet(Patch(Scheduler, "_preempt_request", wrap))


def _unwritten(coordinator: Any, request: Any) -> Iterator[int]:
    """Blocks that are cached for tokens which no step has computed, or has been sent off to."""
    for manager in coordinator.single_type_managers:
        blocks = manager.req_to_blocks.get(request.request_id, ())
        for block in blocks[request.num_computed_tokens // manager.block_size :]:
            if block.block_hash is not None and not block.is_null:
                yield block.block_id


FIX = Fix(
    header("withdrawn-blocks"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.scheduling:hit_after_withdrawal",
        with_fix={"computed": 48, "hit": 48},
        without_fix={"computed": 48, "hit": 64},
    ),
)
