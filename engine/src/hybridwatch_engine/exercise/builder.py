"""A real Mamba metadata builder, and how it splits batches."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine.exercise.fitting import call_with_known

_BLOCK: Final = 16


def split_of_extends() -> dict[str, Any]:
    """How rows of one token are split, and what a FULL graph finds in its slots.

    Split is a decode, the last token of a prompt, and a first token. The slots are those of two
    last tokens, which have the shape of a decode batch.
    """
    mixed = _builder().build(0, _batch([8, 9, 1], [False, True, True]))
    builder = _builder()
    builder.build(0, _batch([10, 20], [True, True]))
    return {
        "decodes": mixed.num_decodes,
        "prefills": mixed.num_prefills,
        "graph_slots": builder.state_indices_tensor_d[:2, 0].tolist(),
    }


def _builder() -> Any:
    """A builder whose slots for the graph name no block yet."""
    import torch
    from vllm.v1.attention.backends import mamba_attn
    from vllm.v1.kv_cache_interface import MambaSpec

    class Builder(mamba_attn.BaseMambaAttentionMetadataBuilder):  # type: ignore[misc]
        metadata_cls = mamba_attn.BaseMambaAttentionMetadata

    spec = call_with_known(
        MambaSpec,
        block_size=_BLOCK,
        shapes=((1,), (1,)),
        dtypes=(torch.float32, torch.float32),
        mamba_cache_mode="none",
        num_speculative_blocks=0,
    )
    builder = Builder(spec, ["layer"], _config(), torch.device("cpu"))
    builder.state_indices_tensor_d.fill_(-1)
    return builder


def _config() -> SimpleNamespace:
    """What the builder reads of vLLM's configuration, in any release."""
    from vllm.config import CUDAGraphMode

    return SimpleNamespace(
        cache_config=SimpleNamespace(
            block_size=_BLOCK,
            mamba_cache_mode="none",
            use_replayssm=False,
            replayssm_buffer_len=_BLOCK,
        ),
        compilation_config=SimpleNamespace(
            cudagraph_mode=CUDAGraphMode.FULL, max_cudagraph_capture_size=None
        ),
        speculative_config=None,
        num_speculative_tokens=0,
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        scheduler_config=SimpleNamespace(max_num_seqs=8, async_scheduling=False),
        mamba_config=SimpleNamespace(backend=None),
        model_config=SimpleNamespace(max_model_len=256),
    )


def _batch(lengths: Sequence[int], flags: Sequence[bool]) -> Any:
    """Rows of one token each, of so many tokens in all, with state in blocks 3, 4, and so on."""
    import torch
    from vllm.v1.attention.backend import CommonAttentionMetadata

    rows = len(lengths)
    starts = torch.arange(rows + 1, dtype=torch.int32)
    seq_lens = torch.tensor(lengths, dtype=torch.int32)
    return call_with_known(
        CommonAttentionMetadata,
        query_start_loc=starts,
        query_start_loc_cpu=starts,
        seq_lens=seq_lens,
        seq_lens_cpu_upper_bound=seq_lens,
        _seq_lens_cpu=seq_lens,
        _num_computed_tokens_cpu=seq_lens - 1,
        num_reqs=rows,
        num_actual_tokens=rows,
        max_query_len=1,
        max_seq_len=max(lengths),
        block_table_tensor=torch.arange(3, 3 + rows, dtype=torch.int32).unsqueeze(1),
        slot_mapping=torch.zeros(rows, dtype=torch.int64),
        causal=True,
        is_prefilling=torch.tensor(flags),
    )
