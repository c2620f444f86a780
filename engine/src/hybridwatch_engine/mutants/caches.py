"""The states that a worker's Mamba layers keep."""

from collections.abc import Iterator
from typing import Any


def state_caches(runner: Any) -> Iterator[tuple[int, Any]]:
    """Yield each cache of each Mamba layer, with the group of block tables that it belongs to."""
    from vllm.model_executor.layers.mamba.abstract import MambaBase

    layers = runner.compilation_config.static_forward_context
    for group, one in enumerate(runner.kv_cache_config.kv_cache_groups):
        for name in one.layer_names:
            if isinstance(layers[name], MambaBase):
                yield from ((group, cache) for cache in layers[name].kv_cache)


def clear_states(runner: Any, request_id: str) -> bool:
    """Let every block of a request hold zeros in every Mamba layer.

    Returns:
        Whether any held something else.
    """
    blocks = runner.requests[request_id].block_ids
    found = False
    for group, cache in state_caches(runner):
        mine = [block for block in blocks[group] if block]
        found |= bool(cache[mine].any())
        cache[mine] = 0
    return found
