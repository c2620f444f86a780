"""A step that passes the end of a block leaves no state in the cache for it.

Beyond upstream: no report of it is known.
"""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_MANAGERS = "v1/core/single_type_kv_cache_manager.py"
_EVICTS = "_maybe_evict_cached_block"


def probe(tree: SourceTree) -> Finding:
    """Look for steps that store a state on their way, and for what becomes of blocks before it."""
    caching = tree.function(_MANAGERS, "MambaManager.cache_blocks")
    partial = tree.function(_MANAGERS, "MambaManager._cache_partial_tail_block")
    if caching is None or partial is None or not mentions(partial, "_checkpoints"):
        return Finding("not-applicable", f"{_MANAGERS} ends a step where a state is kept")
    if calls(caching, _EVICTS):
        return Finding("present", f"{_MANAGERS}:{caching.lineno} takes blocks out again")
    return Finding("lacking", f"{_MANAGERS}:{caching.lineno} keeps every full block")


def _apply() -> PatchSet:
    """Take blocks out of the cache whose end a step has passed without storing a state."""
    from vllm.v1.core.single_type_kv_cache_manager import MambaManager

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def cache_blocks(manager: Any, request: Any, end: int, *args: Any, **kwargs: Any) -> None:
            before = manager.num_cached_block.get(request.request_id, 0)
            original(manager, request, end, *args, **kwargs)
            if manager.mamba_cache_mode == "align":
                _take_out(manager, request, before, end)

        return cache_blocks

    return PatchSet(Patch(MambaManager, "cache_blocks", wrap))


def _take_out(manager: Any, request: Any, before: int, end: int) -> None:
    """Of the blocks that a step up to the token ``end`` has filled, leave those with their state.

    A step writes the state behind its last token, and the one of its checkpoint.
    """
    written = {end, manager._checkpoints.get(request.request_id, (end,))[0]}  # noqa: SLF001
    after = manager.num_cached_block.get(request.request_id, 0)
    for block in manager.req_to_blocks[request.request_id][before:after]:
        last = None if block.is_null else block.block_hash_num_tokens
        if last is not None and request.num_computed_tokens < last and last not in written:
            manager.block_pool._maybe_evict_cached_block(block)  # noqa: SLF001


FIX = Fix(
    header("passed-block-end"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.scheduling:states_kept_by_a_step_that_passes",
        with_fix={"kept": [56]},
        without_fix={"kept": [32, 56]},
    ),
)
