"""A real scheduler with a real cache, for a hybrid that is made up and computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import MagicMock

from hybridwatch_engine_lab.exercise.trial import Plain, call_with_known

BLOCK: Final = 16
"""Tokens of a cache block."""
_PATIENCE: Final = 100
_SAMPLED: Final = 7
"""The token that every step gives every request that is through with its prompt."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What the scheduler has to share out.

    Attributes:
        blocks: Of the cache, the null block included.
        budget: Most tokens of a step.
        mamba_groups: Cache groups of Mamba layers; attention has one more.
        drafts: Tokens that a request may be drafted; each needs a block in every Mamba group.
        longest: Most tokens of a request.
        unit: A prefix is found at multiples of so many tokens. Where that is finer than a block, a
            step stores the state at the last of them besides, as Mamba2's layers do from 0.32.0 on.
    """

    blocks: int
    budget: int = 4 * BLOCK
    mamba_groups: int = 3
    drafts: int = 0
    policy: str = "fcfs"
    longest: int = 64 * BLOCK
    unit: int = BLOCK


class Office:
    """A scheduler in mode ``align`` with a prefix cache, and the steps that it makes."""

    def __init__(self, pool: Pool) -> None:
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
        from vllm.v1.core.sched.scheduler import Scheduler

        init_none_hash(_digest)
        self._hasher = get_request_block_hasher(pool.unit, _digest)
        self.scheduler = call_with_known(
            Scheduler,
            vllm_config=_config(pool),
            kv_cache_config=_cache(pool),
            structured_output_manager=MagicMock(should_advance=lambda *_, **__: False),
            block_size=BLOCK,
            hash_block_size=pool.unit,
            mm_registry=MagicMock(supports_multimodal_inputs=lambda _: False),
        )

    def come(self, name: str, prompt: Sequence[int], answer: int, priority: int = 0) -> Any:
        """Let a request arrive.

        ``priority``: the lower number goes first.
        """
        request = self.made(name, prompt, answer, priority)
        self.scheduler.add_request(request)
        return request

    def made(self, name: str, prompt: Sequence[int], answer: int, priority: int = 0) -> Any:
        """Make a request that has not arrived yet; the arguments are those of ``come``."""
        from vllm import SamplingParams
        from vllm.v1.request import Request

        params = SamplingParams(max_tokens=answer, ignore_eos=True, temperature=0.0)
        return Request(
            request_id=name,
            prompt_token_ids=list(prompt),
            sampling_params=params,
            pooling_params=None,
            arrival_time=float(len(self.scheduler.requests)),
            priority=priority,
            block_hasher=self._hasher,
        )

    def step(self) -> Any:
        """Schedule, compute nothing, and give a token to each request that is due one."""
        from vllm.v1.outputs import ModelRunnerOutput

        scheduled = self.scheduler.schedule()
        rows = list(scheduled.num_scheduled_tokens)
        requests = [self.scheduler.requests[name] for name in rows]
        due = [one.num_computed_tokens >= one.num_tokens for one in requests]
        sampled = [[_SAMPLED] if is_due else [] for is_due in due]
        output = ModelRunnerOutput(
            req_ids=rows,
            req_id_to_index={name: row for row, name in enumerate(rows)},
            sampled_token_ids=sampled,
        )
        self.scheduler.update_from_output(scheduled, output)
        return scheduled


def _digest(value: Any) -> bytes:
    from vllm.utils.hashing import sha256

    digest: bytes = sha256(value)
    return digest


def _config(pool: Pool) -> Any:
    """A configuration of nothing special; what is not said here is a mock, which says yes."""
    config = MagicMock(
        num_speculative_tokens=pool.drafts,
        num_lookahead_tokens=0,
        num_prefill_lookahead_tokens=0,
        max_in_flight_tokens=pool.budget,
        max_concurrent_batches=1,
        use_v2_model_runner=False,
        is_mm_encoder_only=False,
        **dict.fromkeys(_ABSENT),
    )
    config.scheduler_config = Plain(
        max_num_seqs=8,
        max_num_active_seqs=None,
        max_num_scheduled_tokens=None,
        max_num_batched_tokens=pool.budget,
        policy=pool.policy,
        enable_chunked_prefill=True,
        scheduler_reserve_full_isl=True,
    )
    config.cache_config = Plain(
        block_size=BLOCK,
        enable_prefix_caching=True,
        mamba_cache_mode="align",
        num_gpu_blocks=pool.blocks,
        prefix_cache_retention_interval=None,
    )
    config.model_config = MagicMock(
        is_encoder_decoder=False,
        is_diffusion=False,
        enable_return_routed_experts=False,
        return_sampling_mask=False,
        supports_multimodal_inputs=False,
        uses_mrope=False,
        max_model_len=pool.longest,
    )
    config.parallel_config = Plain(
        data_parallel_index=0,
        data_parallel_rank=0,
        pipeline_parallel_size=1,
        decode_context_parallel_size=1,
        prefill_context_parallel_size=1,
    )
    config.observability_config = Plain(per_request_spec_decode_metrics=None)
    config.ec_manager_config.get_encoder_cache_manager_obj = lambda: None
    config.aux_output_config.enabled = False
    return config


_ABSENT: Final = (
    "ec_transfer_config",
    "kv_events_config",
    "kv_transfer_config",
    "lora_config",
    "speculative_config",
)


def _cache(pool: Pool) -> Any:
    import torch
    from vllm.v1 import kv_cache_interface as cache

    finer = {"num_prefill_checkpoint_blocks": 1, "prefill_checkpoint_alignment": 1}
    mamba = cache.MambaSpec(
        block_size=BLOCK,
        shapes=((2,),),
        dtypes=(torch.float32,),
        mamba_cache_mode="align",
        num_speculative_blocks=pool.drafts,
        **(finer if pool.unit < BLOCK else {}),
    )
    attention = cache.FullAttentionSpec(
        block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32
    )
    specs = [*[mamba] * pool.mamba_groups, attention]
    groups = [
        cache.KVCacheGroupSpec([f"layer.{number}"], spec) for number, spec in enumerate(specs)
    ]
    return cache.KVCacheConfig(num_blocks=pool.blocks, kv_cache_tensors=[], kv_cache_groups=groups)


def hit_after_withdrawal() -> dict[str, Any]:
    """An urgent request displaces another out of the step that was to fill its third block.

    Returns:
        ``computed``: Tokens of the displaced request that steps have computed. ``hit``: Tokens that
        the cache hands out to one that begins alike.
    """
    # A step computes a block of one prompt and has 15 tokens left for the other. In the fourth both
    # need blocks, two each, and three are left.
    budget = 2 * BLOCK - 1
    office = Office(Pool(blocks=12, mamba_groups=1, drafts=1, budget=budget, policy="priority"))
    prompt = range(5 * BLOCK + 4)
    low = office.come("low", prompt, answer=2, priority=9)
    office.step()
    office.come("high", range(100, 100 + budget - BLOCK), answer=8)
    office.step()
    office.step()
    computed = low.num_computed_tokens
    office.step()
    alike = office.made("alike", prompt, answer=2)
    _, hit, *_ = office.scheduler.kv_cache_manager.get_computed_blocks(alike)
    return {"computed": computed, "hit": hit}


def lone_request_near_the_ceiling() -> dict[str, Any]:
    """A request alone, whose prompt fits into the cache and whose last step does not.

    Returns:
        ``steps``: Until it is finished, at most 100. ``finished``: Whether it is.
    """
    office = Office(Pool(blocks=14, budget=2 * BLOCK))
    request = office.come("big", range(8 * BLOCK - 2), answer=4)
    steps = 0
    while steps < _PATIENCE and not request.is_finished():
        office.step()
        steps += 1
    return {"steps": steps, "finished": request.is_finished()}


def hit_beside_a_connector() -> dict[str, Any]:
    """A prompt that parts from a cached one where attention has its keys and no state was kept.

    Returns:
        ``attention``, ``mamba``: Tokens that each kind of layer has of it. ``hit``: Tokens that a
        scheduler with a connector is told, which has nothing of it and so leaves them as they are.
    """
    office = Office(Pool(blocks=40))
    office.come("first", range(3 * BLOCK + 4), answer=1)
    office.step()
    office.step()
    parting = [*range(2 * BLOCK + 4), *range(200, 200 + BLOCK)]
    request, manager = office.made("parting", parting, answer=1), office.scheduler.kv_cache_manager
    _, (mamba, *_, attention) = manager.coordinator.find_longest_cache_hit_per_group(
        request.block_hashes, request.num_tokens - 1
    )
    _, hit, _, disagree = manager.get_computed_blocks_for_connector(request)
    if disagree:
        _, hit, *_ = manager.get_computed_blocks(request)
    return {"attention": attention, "mamba": mamba, "hit": hit}


def lone_prompt_beside_a_running_request() -> dict[str, Any]:
    """A prompt of one token comes while another request is served, three drafts at most.

    Returns:
        ``tokens``, ``drafts``: What is scheduled of it in its first step.
    """
    office = Office(Pool(blocks=40, drafts=3))
    office.come("running", range(BLOCK), answer=8)
    office.step()
    office.come("lone", [1], answer=2)
    scheduled = office.scheduler.schedule()
    drafts = scheduled.scheduled_spec_decode_tokens.get("lone", ())
    return {"tokens": scheduled.num_scheduled_tokens["lone"], "drafts": len(drafts)}


def states_kept_by_a_step_that_passes() -> dict[str, Any]:
    """A prompt begins within a block, where a shorter one ended, and is computed in one step.

    Returns:
        ``kept``: Tokens behind which the cache has its states then.
    """
    office = Office(Pool(blocks=40, mamba_groups=1, unit=BLOCK // 4))
    office.come("short", range(BLOCK + 6), answer=1)
    office.step()
    passing = office.come("long", range(4 * BLOCK - 4), answer=1)
    office.scheduler.schedule()
    mamba = office.scheduler.kv_cache_manager.coordinator.single_type_managers[0]
    blocks = mamba.req_to_blocks[passing.request_id]
    return {"kept": [one.block_hash_num_tokens for one in blocks if one.block_hash is not None]}
