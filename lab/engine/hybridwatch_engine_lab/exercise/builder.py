"""A real Mamba metadata builder, its configuration and its batches, and what it makes of them."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine_lab.exercise.trial import call_with_known

BLOCK: Final = 16
"""Tokens of a block of the cache."""

MAX_MODEL_LEN: Final = 256
LAYER: Final = "layer"


def split_of_extends() -> dict[str, Any]:
    """How rows of one token are split, and what a FULL graph finds in its slots.

    Split is a decode, the last token of a prompt, and a first token. The slots are those of two
    last tokens, which have the shape of a decode batch.
    """
    mixed = make_builder().build(0, batch_of([8, 9, 1], flags=[False, True, True]))
    builder = make_builder()
    builder.build(0, batch_of([10, 20], flags=[True, True]))
    return {
        "decodes": mixed.num_decodes,
        "prefills": mixed.num_prefills,
        "graph_slots": builder.state_indices_tensor_d[:2, 0].tolist(),
    }


def make_builder(mode: str = "none", drafts: int = 0, *, mamba2: bool = False) -> Any:
    """A builder whose slots for the graph name no block yet.

    Args:
        mode: Cache mode of the Mamba layers.
        drafts: How many drafts a request may have in a step.
        mamba2: The builder that the engine gives to Mamba2 layers, and not the one below it.
    """
    import torch
    from vllm.v1.attention.backends import mamba2_attn, mamba_attn

    class Builder(mamba_attn.BaseMambaAttentionMetadataBuilder):  # type: ignore[misc]
        metadata_cls = mamba_attn.BaseMambaAttentionMetadata

    kind = mamba2_attn.Mamba2AttentionMetadataBuilder if mamba2 else Builder
    spec, config = build_spec(mode, drafts), build_config(mode, drafts)
    builder = kind(spec, [LAYER], config, torch.device("cpu"))
    builder.state_indices_tensor_d.fill_(-1)
    return builder


def build_spec(mode: str, drafts: int) -> Any:
    """What the cache holds of one Mamba layer, as the engine describes it."""
    import torch
    from vllm.v1.kv_cache_interface import MambaSpec

    return call_with_known(
        MambaSpec,
        block_size=BLOCK,
        shapes=((1,), (1,)),
        dtypes=(torch.float32, torch.float32),
        mamba_cache_mode=mode,
        num_speculative_blocks=drafts,
    )


def build_config(mode: str, drafts: int) -> SimpleNamespace:
    """What a builder reads of vLLM's configuration, in any release."""
    from vllm.config import CUDAGraphMode

    speculation = SimpleNamespace(num_speculative_tokens=drafts, parallel_drafting=False)
    return SimpleNamespace(
        cache_config=SimpleNamespace(
            block_size=BLOCK,
            mamba_cache_mode=mode,
            use_replayssm=False,
            replayssm_buffer_len=BLOCK,
        ),
        compilation_config=SimpleNamespace(
            cudagraph_mode=CUDAGraphMode.FULL, max_cudagraph_capture_size=None
        ),
        speculative_config=speculation if drafts else None,
        num_speculative_tokens=drafts,
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        scheduler_config=SimpleNamespace(max_num_seqs=8, async_scheduling=False),
        mamba_config=SimpleNamespace(backend=None),
        model_config=SimpleNamespace(
            max_model_len=MAX_MODEL_LEN, get_mamba_chunk_size=lambda: BLOCK
        ),
    )


def batch_of(
    lengths: Sequence[int],
    *,
    flags: Sequence[bool] = (),
    tokens: int = 1,
    columns: int = 1,
    padding: int = 0,
) -> Any:
    """A batch in which every request computes equally many tokens.

    Args:
        lengths: Tokens that each request has in all.
        flags: Whether each request is still in its prompt; none is when left out.
        tokens: How many of them it computes in this step.
        columns: Blocks that it has: 3, 4, and so on.
        padding: Rows behind the requests that hold none.
    """
    import torch
    from vllm.v1.attention.backend import CommonAttentionMetadata

    rows = len(lengths) + padding
    starts = torch.arange(rows + 1, dtype=torch.int32).clamp(max=len(lengths)) * tokens
    seq_lens = torch.tensor([*lengths, *[0] * padding], dtype=torch.int32)
    blocks = torch.arange(3, 3 + rows * columns, dtype=torch.int32)
    return call_with_known(
        CommonAttentionMetadata,
        query_start_loc=starts,
        query_start_loc_cpu=starts,
        seq_lens=seq_lens,
        seq_lens_cpu_upper_bound=seq_lens,
        _seq_lens_cpu=seq_lens,
        _num_computed_tokens_cpu=seq_lens - starts.diff(),
        num_reqs=rows,
        num_actual_tokens=rows * tokens,
        max_query_len=tokens,
        max_seq_len=max(lengths),
        block_table_tensor=blocks.reshape(rows, columns),
        slot_mapping=torch.zeros(rows * tokens, dtype=torch.int64),
        causal=True,
        is_prefilling=torch.tensor(flags or [False] * rows),
    )


DRAFTS: Final = 2
_TOKENS: Final = 1 + DRAFTS
_COLUMNS: Final = MAX_MODEL_LEN // BLOCK + DRAFTS


def width_of_graph_slots() -> dict[str, Any]:
    """Columns of the slots that a FULL graph reads, and what happens to a full block table."""
    builder = make_builder("all", DRAFTS)
    width = builder.state_indices_tensor_d.shape[1]
    try:
        _decodes(builder, columns=_COLUMNS)
    except RuntimeError as error:
        return {"columns": width, "build": type(error).__name__}
    return {"columns": width, "build": "done"}


def rows_of_graph() -> dict[str, Any]:
    """Block indices of a graph's batch: two requests and a row of padding, three tokens each.

    -1 is what an earlier batch has left behind.
    """
    builder = make_builder("all", DRAFTS)
    builder.block_idx_last_scheduled_token.fill_(-1)
    builder.block_idx_last_computed_token.fill_(-1)
    final = _decodes(builder, padding=1)
    return {
        "requests": final.num_reqs,
        "scheduled": final.block_idx_last_scheduled_token.tolist(),
        "computed": final.block_idx_last_computed_token.tolist(),
    }


def anchors_of_step() -> dict[str, Any]:
    """The blocks that a step gets: of a request remembered, of one forgotten, of padding."""
    import numpy as np
    from vllm.v1.worker import mamba_utils

    anchors = SimpleNamespace(np=np.zeros(3, dtype=np.int32), copy_to_gpu=lambda: None)
    nothing = SimpleNamespace(
        finished_req_ids=(),
        preempted_req_ids=(),
        scheduled_cached_reqs=SimpleNamespace(resumed_req_ids=()),
    )
    batch = SimpleNamespace(req_ids=["a", "b"])
    mamba_utils.preprocess_mamba_all_specdec(nothing, batch, {"a": 5}, 2, anchors)
    return {"anchors": anchors.np.tolist()}


def pages_of_request() -> dict[str, Any]:
    """Blocks counted for the longest request, and whether a row of the block table holds them."""
    spec, config = build_spec("all", DRAFTS), build_config("all", DRAFTS)
    width = _COLUMNS
    if hasattr(spec, "max_num_blocks_per_req"):  # elsewhere it is worked out without the spec
        width = spec.max_num_blocks_per_req(config, MAX_MODEL_LEN)
    return {
        "pages": spec.max_memory_usage_bytes(config) // spec.page_size_bytes,
        "row": width,
    }


def blocks_of_convolution() -> dict[str, Any]:
    """The blocks from which two decodes read their convolution.

    The first has computed 37 tokens, so its last accepted one is in block 2, and wrote from block
    3 on; of the second, which has computed 61, nothing is remembered.
    """
    import torch

    final = _decodes(make_builder("all", DRAFTS), prev_last_scheduled_idx=torch.tensor([3, -1]))
    return {"read_from": final.block_idx_last_computed_token.tolist()}


def _decodes(builder: Any, *, columns: int = 0, padding: int = 0, **others: Any) -> Any:
    """Metadata of two requests, 40 and 64 tokens long with their drafts.

    ``columns``: blocks of each request; as many as the builder has room for when left out.
    ``others``: whatever else the builder is given.
    """
    import torch

    columns = columns or builder.state_indices_tensor_d.shape[1]
    batch = batch_of([40, 64], tokens=_TOKENS, columns=columns, padding=padding)
    accepted = torch.tensor([1, 2, *[1] * padding], dtype=torch.int32)
    return builder.build(0, batch, num_accepted_tokens=accepted, **others)
