"""How much of a block is copied that layers of two kinds share."""

from collections.abc import Callable
from typing import Any, Final

_BLOCKS: Final = 3
_PAGE: Final = 4
"""Bytes of a block in each of two caches; a Mamba layer uses half of them, attention all."""


def copy_of_a_shared_block() -> dict[str, Any]:
    """Copy the first block into the second one, where two caches lie in one allocation.

    Layers come in the model's order: Mamba, the draft head's attention, attention, Mamba.

    Returns:
        For each model runner, bytes that arrived in each cache.
    """
    from vllm.v1.worker import gpu_model_runner
    from vllm.v1.worker.gpu import model_runner

    return {
        name: _copied(runner.copy_kv_cache_blocks_inplace)
        for name, runner in (("v1", gpu_model_runner), ("v2", model_runner))
    }


def _copied(copy: Callable[..., None]) -> list[int]:
    import torch

    memory = torch.arange(2 * _BLOCKS * _PAGE, dtype=torch.uint8)
    first, second = memory.view(2, _BLOCKS, _PAGE)
    state = _PAGE // 2
    copy([first[:, :state], second, first, second[:, :state]], _BLOCKS, [(0, 1)])
    return [int((cache[1] == cache[0]).sum()) for cache in (first, second)]
