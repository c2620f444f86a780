"""The scheduler's bookkeeping of the prefix cache, on stand-ins: lookups, chunks, kept states."""

from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine_lab.exercise.builder import BLOCK, build_spec
from hybridwatch_engine_lab.exercise.trial import Plain, call_with_known

_ATTENTION, _MAMBA = 0, 1
_PROMPT: Final = 3 * BLOCK + BLOCK // 2
"""Tokens of a prompt: three blocks and a half."""


def hit_with_a_head() -> dict[str, Any]:
    """What a prompt is spared whose keys are cached, and its states but the first.

    With a draft head the attention layers do without the last block that they find.
    """
    pool = _Pool({_ATTENTION: (0, 1, 2), _MAMBA: (1, 2)})
    blocks, spared, *_ = _coordinator(pool).find_longest_cache_hit(
        list(range(_PROMPT // BLOCK)), _PROMPT - 1
    )
    return {"blocks_spared": spared // BLOCK, "blocks_with_keys": len(blocks[_ATTENTION])}


def chunks() -> dict[str, Any]:
    """Tokens of the next step, of 24 that the budget allows where there is more to do.

    Of a request that was preempted after it had said something, of a new one and of one that
    decodes.
    """
    resumed = _request(prompt=20, said=40)
    decoding = _request(prompt=20, said=5, computed=24)
    return {
        "resumed": _find_chunk(resumed, 24),
        "new": _find_chunk(_request(prompt=60), 24),
        "decode": _find_chunk(decoding, 1),
    }


def chunk_behind_a_connector() -> dict[str, Any]:
    """Tokens of the first step of a prompt of which a connector has one block.

    The budget allows one block and a half.
    """
    try:
        return {"chunk": _find_chunk(_request(prompt=60), 24, 0, BLOCK)}
    except AssertionError:
        return {"chunk": "AssertionError"}


def states_kept_with_a_head() -> dict[str, Any]:
    """Which states of a prompt are kept, where as few as possible are."""
    pool = _Pool({})
    coordinator = _coordinator(pool)
    coordinator.single_type_managers = (_mamba_manager(pool),)
    coordinator.cache_blocks(_request(prompt=_PROMPT), _PROMPT)
    return {"kept": pool.kept}


class _Pool:
    """Blocks that are cached, by number within the prompt; a block's hash is its number."""

    hash_block_size = BLOCK

    def __init__(self, cached: dict[int, tuple[int, ...]]) -> None:
        self.null_block = SimpleNamespace(is_null=True, block_hash=None)
        self.kept: list[bool] = []
        self._cached = cached

    def get_cached_block(self, block_hash: int, kv_cache_group_ids: list[int]) -> Any:
        """The block of each group; None unless all have it."""
        if any(block_hash not in self._cached[group] for group in kv_cache_group_ids):
            return None
        return [SimpleNamespace(is_null=False, block_hash=block_hash) for _ in kv_cache_group_ids]

    def cache_full_blocks(self, *, block_mask: list[bool], **_: Any) -> None:
        """Take note of which blocks are kept."""
        self.kept = block_mask


def _coordinator(pool: _Pool) -> Any:
    """A coordinator of one attention group and one Mamba group, both of which know of a head."""
    from vllm.v1.core import kv_cache_coordinator as module
    from vllm.v1.core.single_type_kv_cache_manager import FullAttentionManager, MambaManager

    kinds = (FullAttentionManager, MambaManager)
    specs = (_attention_spec(), build_spec("align", 0))
    group = SimpleNamespace(
        block_size=BLOCK,
        block_pool=pool,
        dcp_world_size=1,
        pcp_world_size=1,
        retains_longer_hit=False,
    )
    # Nothing of a coordinator matters here but its groups.
    coordinator = module.HybridKVCacheCoordinator.__new__(module.HybridKVCacheCoordinator)
    own = {
        "attention_groups": [
            module.SpecGroup(spec, [number], kind, True)
            for number, (kind, spec) in enumerate(zip(kinds, specs, strict=True))
        ],
        "kv_cache_config": SimpleNamespace(kv_cache_groups=[None, None]),
        "single_type_managers": (group, group),
        "block_pool": pool,
        "hash_block_size": BLOCK,
        "scheduler_block_size": BLOCK,
        "enable_partial_hash_hits": False,
        "dcp_world_size": 1,
        "retention_interval": 0,
        "num_reprefillable_tokens": 0,
        "eagle_group_ids": {_ATTENTION, _MAMBA},
    }
    for name, value in own.items():
        setattr(coordinator, name, value)
    return coordinator


def _attention_spec() -> Any:
    import torch
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    return call_with_known(
        FullAttentionSpec, block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32
    )


def _find_chunk(request: Any, tokens: int, *hits: int) -> int:
    from vllm.v1.core.sched.scheduler import Scheduler

    scheduler = Plain(
        cache_config=Plain(block_size=BLOCK),
        scheduler_config=Plain(),
        block_size=BLOCK,
        hash_block_size=BLOCK,
        max_num_scheduled_tokens=24,
    )
    split = vars(Scheduler)["_mamba_block_aligned_split"]
    return int(split(scheduler, request, tokens, *hits))


def _request(*, prompt: int, said: int = 0, computed: int = 0) -> Any:
    return SimpleNamespace(
        request_id="request",
        num_prompt_tokens=prompt,
        num_tokens=prompt + said,
        num_output_tokens=said,
        num_computed_tokens=computed,
        shared_prefix_boundary=0,
    )


def _mamba_manager(pool: _Pool) -> Any:
    """A manager of Mamba states that holds three blocks of one request."""
    from vllm.v1.core.single_type_kv_cache_manager import MambaManager

    # Nothing of a manager matters here but its books.
    manager = MambaManager.__new__(MambaManager)
    blocks = [SimpleNamespace(is_null=False, block_hash=None) for _ in range(_PROMPT // BLOCK)]
    own = {
        "enable_caching": True,
        "kv_cache_spec": build_spec("align", 0),
        "block_pool": pool,
        "block_size": BLOCK,
        "scheduler_block_size": BLOCK,
        "cache_hit_alignment_tokens": BLOCK,
        "kv_cache_group_id": _MAMBA,
        "use_eagle": True,
        "mamba_cache_mode": "align",
        "num_cached_block": {},
        "req_to_blocks": {"request": blocks},
        "cached_blocks_this_step": set(),
        "dcp_world_size": 1,
        "_checkpoints": {},
    }
    for name, value in own.items():
        setattr(manager, name, value)
    return manager
