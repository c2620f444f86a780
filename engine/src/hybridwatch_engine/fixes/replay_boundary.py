"""The state that a repeated prompt resumes from is kept (vllm#53504; in 0.30.0)."""

from collections.abc import Callable, Sequence
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_COORDINATOR = "v1/core/kv_cache_coordinator.py"
_MANAGER = "v1/core/single_type_kv_cache_manager.py"
_METHOD = "get_replay_boundaries"


def probe(tree: SourceTree) -> Finding:
    """Look for boundaries that know of a head's last block."""
    mask = tree.function(_MANAGER, "MambaManager.reachable_block_mask")
    if mask is None or not mentions(mask, "reachable_boundaries"):
        return Finding("not-applicable", f"{_MANAGER} keeps every state")
    for name in ("replay_boundaries", f"KVCacheCoordinator.{_METHOD}"):
        found = tree.function(_COORDINATOR, name)
        if found is not None:
            return Finding("present", f"{_COORDINATOR}:{found.lineno} goes back a head's block")
    return Finding("lacking", f"{_MANAGER}:{mask.lineno} keeps the state behind a head's block")


def _apply() -> PatchSet:
    """Keep the state where a prompt can be resumed with a head, and not the one a block further."""
    from vllm.v1.core.single_type_kv_cache_manager import MambaManager

    def wrap(original: Any) -> Any:
        mask = original.__func__

        def reachable_block_mask(cls: type[Any], /, **named: Any) -> Any:
            boundaries, unit = named.get("reachable_boundaries", ()), named["alignment_tokens"]
            if named["use_eagle"] and boundaries and unit:
                named["reachable_boundaries"] = _resumable(boundaries, unit)
            return mask(cls, **named)

        return classmethod(reachable_block_mask)

    return PatchSet(Patch(MambaManager, "reachable_block_mask", wrap))


def _resumable(boundaries: Sequence[int], unit: int) -> list[int]:
    """Where a prompt can be resumed, alone and with more text behind it; then the junctions.

    Args:
        boundaries: The last token of the prompt but one, and junctions with other prompts.
        unit: Tokens of a block; with a head the last one that is found is dropped.
    """
    last, *junctions = boundaries
    repeated, continued = ((tokens // unit - 1) * unit for tokens in (last, last + 1))
    return [max(repeated, 0), max(continued, 0), *junctions]


def _revert() -> PatchSet:
    """Keep the state at the last end of a block, head or not."""
    from vllm.v1.core import kv_cache_coordinator as module

    def of_length(_: Callable[..., Any]) -> Callable[..., Any]:
        def replay_boundaries(num_prompt_tokens: int, *_: Any, **__: Any) -> tuple[int, ...]:
            return (num_prompt_tokens - 1,)

        return replay_boundaries

    def of_request(_: Callable[..., Any]) -> Callable[..., Any]:
        def get_replay_boundaries(_: Any, request: Any) -> tuple[int, ...]:
            return (request.num_prompt_tokens - 1,)

        return get_replay_boundaries

    if hasattr(module, "replay_boundaries"):
        return PatchSet(Patch(module, "replay_boundaries", of_length))
    return PatchSet(Patch(module.KVCacheCoordinator, _METHOD, of_request))


FIX = Fix(
    header("replay-boundary"),
    probe,
    apply=_apply,
    revert=_revert,
    # Three blocks and a half: with a head, a repeat resumes from the end of the second.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.prefix_cache:states_kept_with_a_head",
        with_fix={"kept": [False, True, False]},
        without_fix={"kept": [False, False, True]},
    ),
)
