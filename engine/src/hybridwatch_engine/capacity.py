"""What the cache of an engine can hold and does, as its scheduler says; and memory given back."""

import ctypes
import gc
import traceback
from typing import Any

from hybridwatch_engine.probes.leaks import find_held_blocks


def trim() -> bool:
    """Give what this process needs no more, and the C library keeps, back to the system.

    Else what a process holds says what it once needed: a leak goes into freed memory at first.
    Objects that only refer to each other go, too, which Python drops now and then. ``False`` where
    the C library has no such function.
    """
    gc.collect()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is None:
        return False
    give_back(0)
    return True


def tell_capacity(scheduler: Any) -> dict[str, Any]:
    """Tell what there is of the cache now.

    Returns:
        ``blocks``: Those that are free for requests. ``held``: Those that are not. ``tokens``: How
        many fit into the free ones in requests of the longest kind, by vLLM's own rule
        (``v1/core/kv_cache_utils.py``); of a hybrid model blocks of attention and of states are of
        one pool. ``state_bytes``: What the recurrent state of such a request takes, padding and
        places for drafts included; 0 without recurrent layers. Or ``error``: why it is unknown.
    """
    try:
        return _tell(scheduler)
    except (
        AttributeError,
        ImportError,
        LookupError,
        TypeError,
    ):  # another release keeps it elsewhere
        return {"error": traceback.format_exc().strip().splitlines()[-1]}


def _tell(scheduler: Any) -> dict[str, int]:
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config
    from vllm.v1.kv_cache_interface import MambaSpec

    config, cache = scheduler.vllm_config, scheduler.kv_cache_config
    free = scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
    at_once = get_max_concurrency_for_kv_cache_config(config, cache) * free / cache.num_blocks
    return {
        "blocks": free,
        "held": len(find_held_blocks(scheduler)),
        "tokens": int(at_once * config.model_config.max_model_len),
        "state_bytes": sum(
            group.kv_cache_spec.max_memory_usage_bytes(config) * len(group.layer_names)
            for group in cache.kv_cache_groups
            if isinstance(group.kv_cache_spec, MambaSpec)
        ),
    }
