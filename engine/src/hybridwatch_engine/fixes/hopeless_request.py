"""A request that cannot go on with the whole cache for itself is refused, not tried for ever.

Beyond upstream (vllm#52520 is open).
"""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_SCHEDULER = "v1/core/sched/scheduler.py"
_REFUSED = "grammar_compile_error_reqs"
"""Requests that the scheduler answers with an error after the step; this is their only list."""


def probe(tree: SourceTree) -> Finding:
    """Look for a preemption that asks whether the request can ever go on."""
    preempt = tree.function(_SCHEDULER, "Scheduler._preempt_request")
    update = tree.function(_SCHEDULER, "Scheduler.update_from_output")
    if preempt is None or update is None or not mentions(update, _REFUSED):
        return Finding("not-applicable", f"{_SCHEDULER} has no list of requests to refuse")
    if mentions(preempt, _REFUSED) or mentions(preempt, "FINISHED_ERROR"):
        return Finding("present", f"{_SCHEDULER}:{preempt.lineno} refuses a request")
    return Finding("lacking", f"{_SCHEDULER}:{preempt.lineno} puts every request back in the queue")


def _apply() -> PatchSet:
    """Refuse a request that is preempted for want of blocks while it has all of them."""
    from vllm.v1.core.sched.scheduler import Scheduler

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def preempt(scheduler: Any, request: Any, *args: Any, **kwargs: Any) -> None:
            original(scheduler, request, *args, **kwargs)
            pool = scheduler.kv_cache_manager.block_pool
            # All but the null block.
            if not scheduler.running and pool.get_num_free_blocks() == pool.num_gpu_blocks - 1:
                getattr(scheduler, _REFUSED).add(request.request_id)

        return preempt

    return PatchSet(Patch(Scheduler, "_preempt_request", wrap))


FIX = Fix(
    header("hopeless-request"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.scheduling:lone_request_near_the_ceiling",
        with_fix={"steps": 5, "finished": True},
        without_fix={"steps": 100, "finished": False},
    ),
)
