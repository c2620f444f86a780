"""With a KV connector a hit is no longer than what every kind of layer has (vllm#48425)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_SCHEDULER = "v1/core/sched/scheduler.py"


def probe(tree: SourceTree) -> Finding:
    """Look for a scheduler that asks whether the kinds of layers agree."""
    step = tree.function(_SCHEDULER, "Scheduler.schedule")
    if step is not None and mentions(step, "hit_diverged"):
        return Finding("present", f"{_SCHEDULER}:{step.lineno} asks whether the hits agree")
    if step is not None and mentions(step, "per_group_hits"):
        return Finding("lacking", f"{_SCHEDULER}:{step.lineno} takes the longest of the hits")
    return Finding("not-applicable", f"{_SCHEDULER} asks no kind of layer by itself")


def _revert() -> PatchSet:
    """Take the longest hit of any kind of layer, as 0.24 to 0.26 do."""
    from vllm.v1.core.kv_cache_manager import KVCacheManager

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def lookup(manager: Any, request: Any) -> Any:
            coordinator = manager.coordinator
            find = getattr(coordinator, "find_longest_cache_hit_per_group", None)
            if find is None or not manager.prefix_cache_lookup_enabled(request):
                return original(manager, request)
            computed, hits = find(request.block_hashes, request.num_tokens - 1)
            return manager.create_kv_cache_blocks(computed), max(hits), 0, False

        return lookup

    return PatchSet(Patch(KVCacheManager, "get_computed_blocks_for_connector", wrap))


FIX = Fix(
    header("connector-hits"),
    probe,
    revert=_revert,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.scheduling:hit_beside_a_connector",
        with_fix={"attention": 32, "mamba": 0, "hit": 0},
        without_fix={"attention": 32, "mamba": 0, "hit": 32},
    ),
)
