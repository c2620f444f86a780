"""A draft head's margin in a prefix lookup is not for Mamba (vllm#43559; in 0.26.0)."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_COORDINATOR = "v1/core/kv_cache_coordinator.py"
_LOOKUP = "find_longest_cache_hit"

_CEILING: Final[ContextVar[int | None]] = ContextVar("ceiling", default=None)
"""How long the hit of the lookup in progress may be at most; ``None`` outside of one."""


def probe(tree: SourceTree) -> Finding:
    """Look for an exception for Mamba where all groups of the cache are reconciled."""
    lookup = tree.function(_COORDINATOR, f"HybridKVCacheCoordinator.{_LOOKUP}")
    if lookup is None or not mentions(lookup, "use_eagle"):
        return Finding("not-applicable", f"{_COORDINATOR} gives no group a margin")
    is_excepted = mentions(lookup, "MambaSpec")
    word = "every group but Mamba's" if is_excepted else "every group"
    evidence = f"{_COORDINATOR}:{lookup.lineno} gives the margin of a head to {word}"
    return Finding("present" if is_excepted else "lacking", evidence)


def _revert() -> PatchSet:
    """Let Mamba look one block further than the attention layers have keys."""
    from vllm.v1.core.kv_cache_coordinator import HybridKVCacheCoordinator
    from vllm.v1.core.single_type_kv_cache_manager import MambaManager

    def remember(original: Callable[..., Any]) -> Callable[..., Any]:
        def lookup(coordinator: Any, block_hashes: Any, max_cache_hit_length: int) -> Any:
            token = _CEILING.set(max_cache_hit_length)
            try:
                return original(coordinator, block_hashes, max_cache_hit_length)
            finally:
                _CEILING.reset(token)

        return lookup

    def look_further(original: Any) -> Any:
        find = original.__func__

        def find_longest_cache_hit(cls: type[Any], /, **named: Any) -> Any:
            ceiling = _CEILING.get()
            if ceiling is not None and named["drop_eagle_block"]:
                further = named["max_length"] + named["kv_cache_spec"].block_size
                named["max_length"] = min(further, ceiling)
            return find(cls, **named)

        return classmethod(find_longest_cache_hit)

    return PatchSet(
        Patch(HybridKVCacheCoordinator, _LOOKUP, remember),
        Patch(MambaManager, _LOOKUP, look_further),
    )


FIX = Fix(
    header("mamba-lookup-margin"),
    probe,
    revert=_revert,
    # The attention layers have three blocks, of which the head's last is dropped; Mamba has the
    # states at the ends of the second and the third.
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.prefix_cache:hit_with_a_head",
        with_fix={"blocks_spared": 2, "blocks_with_keys": 2},
        without_fix={"blocks_spared": 3, "blocks_with_keys": 2},
    ),
)
