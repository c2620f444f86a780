"""How often a mutant's code ran, and how often it changed something."""

from collections.abc import Iterator
from typing import Any


class Tally:
    """The two counters of one mutant in one process.

    Attributes:
        reached: Calls in which the mutant had something to work on.
        changed: Those of them in which it left something else than was there.
    """

    def __init__(self) -> None:
        self.reached = 0
        self.changed = 0

    def count(self, *, changed: bool) -> None:
        """Note one call."""
        self.reached += 1
        self.changed += changed

    def clear(self) -> None:
        """Begin from zero."""
        self.reached = self.changed = 0


def slots_of(indices: Any) -> Any:
    """The slots among indices of any shape, each once, without the null block and padding."""
    slots = indices.flatten().long().unique()
    return slots[slots > 0]


def of_precision(values: Any, dtype: str) -> Any:
    """Round values to the precision of a type of torch, and keep their own type."""
    import torch

    return values.to(getattr(torch, dtype)).to(values.dtype)


def differ(one: Any, other: Any) -> bool:
    """Whether two tensors of one shape hold different values anywhere."""
    return bool((one != other).any())


def moved_in_time(states: Any, slots: Any, by: int) -> bool:
    """Move what some slots of a convolution's inputs hold along their last axis, which is time.

    Returns:
        Whether anything is other than it was.
    """
    before = states[slots]
    states[slots] = before.roll(by, dims=-1)
    return differ(states[slots], before)


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
