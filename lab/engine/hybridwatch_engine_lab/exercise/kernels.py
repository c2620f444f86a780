"""What single functions do to tensors: copies of blocks, a CPU's kernels and its sampler."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

from hybridwatch_engine_lab.exercise.trial import NotBuiltError

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


_WIDTH: Final = 3
"""Of the convolution; one of four has another kernel on some machines."""
_DRAFTS: Final = 3
_SIZE: Final = 32
"""Of a head; a layer has one for each of query, key and value."""


def window_after_short_step() -> dict[str, Any]:
    """Give a request whose window is 1, 2 a step of the token 9, alone and beside a longer step.

    Returns:
        The first inputs in its window afterwards, as many as the next step looks at.
    """
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        raise NotBuiltError("this engine does not compute gated delta nets on a CPU")
    return {"alone": _window([1]), "beside": _window([1 + _DRAFTS, 1])}


def _window(lengths: list[int]) -> list[int]:
    """The last row's window; ``lengths`` are the tokens of each row."""
    import torch
    from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention

    half = torch.bfloat16
    rows, kept = len(lengths), _WIDTH - 1 + _DRAFTS
    layer = SimpleNamespace(
        conv1d=SimpleNamespace(weight=torch.ones(3 * _SIZE, _WIDTH, dtype=half), bias=None),
        activation="silu",
        A_log=torch.zeros(1),
        dt_bias=torch.zeros(1, dtype=half),
        rearrange_mixed_qkv=lambda mixed: [
            one.unflatten(1, (1, -1)).unsqueeze(0).contiguous() for one in mixed.chunk(3, dim=1)
        ],
    )
    metadata = gdn_attention.GDNAttentionMetadata(
        *(0, 0, 0, 0, rows, sum(lengths), sum(lengths)),
        spec_state_indices_tensor=torch.arange(rows * (1 + _DRAFTS)).view(rows, -1).int(),
        spec_query_start_loc=torch.tensor([0, *lengths]).cumsum(0).int(),
        num_accepted_tokens=torch.ones(rows, dtype=torch.int32),
    )
    slots = rows * (1 + _DRAFTS)
    windows = torch.arange(1, kept + 1, dtype=half).expand(slots, 3 * _SIZE, kept).contiguous()
    gates = torch.zeros(sum(lengths), 1, dtype=half)
    inputs = torch.full((sum(lengths), 3 * _SIZE), 9.0, dtype=half)
    states = torch.zeros(slots, 1, _SIZE, _SIZE)
    gdn_attention._spec_forward(  # noqa: SLF001 - it is what the fix wraps
        *(layer, metadata, inputs, gates, gates, windows, states, _WIDTH, kept)
    )
    last = int(metadata.spec_state_indices_tensor[-1, 0])
    return [int(one) for one in windows[last, 0, : _WIDTH - 1]]


_TOKENS, _HEADS, _HEAD_SIZE = 4, 2, 32


def heads_apart() -> dict[str, Any]:
    """Rotate tokens with their heads in one row, and apart: of which is the outcome the same?"""
    import torch
    from vllm import _custom_ops
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        raise NotBuiltError("this engine does not rotate on a CPU")
    angles = torch.arange(64).float()[:, None] / torch.arange(1, _HEAD_SIZE // 2 + 1)
    cache = torch.cat([angles.cos(), angles.sin()], dim=-1)
    positions = torch.arange(3, 3 + _TOKENS)
    whole = torch.arange(1, 1 + _TOKENS * _HEADS * _HEAD_SIZE).float().view(_TOKENS, -1)
    apart = whole.clone().view(_TOKENS, _HEADS, _HEAD_SIZE)
    for query in (whole, apart):
        _custom_ops.rotary_embedding(positions, query, query.clone(), _HEAD_SIZE, cache, True)
    right = whole.view_as(apart)
    return {"tokens_turned": [bool(torch.equal(*pair)) for pair in zip(apart, right, strict=True)]}


_VOCABULARY: Final = 1_000
_DRAWS: Final = 8
_SEED: Final = 7


def seed_beside_others() -> dict[str, Any]:
    """Draw from flat logits again and again, the first row with the same seed each time."""
    import torch

    # The sampler compiles a function for rows without seeds; what it draws matters here alone.
    with torch.compiler.set_stance("force_eager"):
        drawn = [_draw() for _ in range(_DRAWS)]
    return {
        name: len({tokens[row] for tokens in drawn}) == 1
        for row, name in enumerate(("seeded_row_repeats", "other_row_repeats"))
    }


def _draw() -> list[int]:
    import torch
    from vllm.v1.sample.sampler import Sampler

    sampler = Sampler()
    sampler.topk_topp_sampler.forward = sampler.topk_topp_sampler.forward_cpu
    metadata = SimpleNamespace(
        all_greedy=False,
        all_random=True,
        temperature=torch.ones(2),
        logitsprocs=SimpleNamespace(argmax_invariant=[]),
        generators={0: torch.Generator().manual_seed(_SEED)},
        top_k=None,
        top_p=None,
        max_num_logprobs=None,
        logprob_token_ids=None,
    )
    tokens, _ = sampler.sample(torch.zeros(2, _VOCABULARY), metadata)
    drawn: list[int] = tokens.tolist()
    return drawn


_KERNEL = "selective_state_update_cpu"
_STATE_SIZE = 16
"""Channels, and entries of a state; as many as the compiled kernel takes at once."""


def states_behind_tokens() -> dict[str, Any]:
    """States and outputs of a request whose three tokens add one each to a state of zero.

    The state is read from slot 1, where the last accepted token left it; behind the tokens it
    belongs into the slots 1, 2 and 3.
    """
    import torch
    from vllm.model_executor.layers.mamba.ops.ssu_dispatch import CPUSSUBackend

    if not hasattr(torch.ops._C, _KERNEL):  # noqa: SLF001 - where vLLM keeps its kernels
        raise NotBuiltError(f"this engine has no {_KERNEL}")
    states = torch.zeros(4, 1, _STATE_SIZE, _STATE_SIZE)
    tokens = torch.ones(3, 1, _STATE_SIZE)
    out = torch.zeros_like(tokens)
    slots = torch.tensor([[1, 2, 3]], dtype=torch.int32)
    CPUSSUBackend(MagicMock())(
        states,
        tokens,
        torch.ones(3, 1, 1).expand(-1, -1, _STATE_SIZE),
        torch.zeros(1, 1, 1).expand(-1, _STATE_SIZE, _STATE_SIZE),
        tokens / _STATE_SIZE,
        tokens,
        torch.zeros(1, 1).expand(-1, _STATE_SIZE),
        torch.zeros(1, 1).expand(-1, _STATE_SIZE),
        state_batch_indices=slots,
        dst_state_batch_indices=slots,
        out=out,
        num_accepted_tokens=torch.ones(1, dtype=torch.int32),
        cu_seqlens=torch.tensor([0, 3], dtype=torch.int32),
    )
    return {
        "states": (states[1:, 0, 0, 0] * _STATE_SIZE).tolist(),
        "outputs": out[:, 0, 0].tolist(),
    }
