"""Has the blocks of an engine's cache in the order in which it got them at its start.

Freed blocks go to the end of the queue of free ones, so which blocks a request gets
hangs on all that ran before. An engine that shall do the same again must begin with the same queue.
"""

from typing import Any


def order_free_blocks(scheduler: Any) -> None:
    """Sort the free blocks by number; for a scheduler without requests, and nothing cached.

    Args:
        scheduler: The scheduler of the engine's core.

    Raises:
        AttributeError: This release has renamed the pool of blocks.
    """
    from vllm.v1.core.kv_cache_utils import FreeKVCacheBlockQueue

    pool = scheduler.kv_cache_manager.block_pool
    # The first block stands for none, and is never free.
    pool.free_block_queue = FreeKVCacheBlockQueue(pool.blocks[1:])
