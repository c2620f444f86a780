"""Random launches of the kernels in ``runner_kernels.states``: block tables, slots and states."""

from itertools import accumulate
from typing import Any, Final

import torch

from hybridwatch_engine_lab.studies.kernels.draw import Draw, int32
from hybridwatch_engine_lab.studies.kernels.runner_batch import (
    BLOCK,
    GROUPS,
    ROOM,
    ROWS,
    WIDTH,
    DrawnBatch,
    Launch,
    LaunchMakers,
)


def _gather(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    padded = batch.requests + draw.count(0, ROWS - batch.requests)
    tables = {
        "batch_idx_to_req_idx": batch.idx_mapping,
        "src_block_table_ptrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "dst_block_table_ptrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "block_table_strides": torch.full((GROUPS,), WIDTH),
        "num_blocks": batch.numbers(0, WIDTH, GROUPS, ROWS),
        "num_reqs": batch.requests,
        "BLOCK_SIZE": 4,
    }
    return (GROUPS, padded), tables, ("dst_block_table_ptrs",)


def _slots(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    sizes = int32([BLOCK, draw.one((1, BLOCK))])
    call = {
        **batch.lookup,
        "max_num_tokens": ROOM,
        "pos": batch.numbers(0, WIDTH * int(sizes.min()) - 1, ROOM).long(),
        "block_table_ptrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "block_table_strides": torch.full((GROUPS,), WIDTH),
        "block_sizes": sizes,
        "kernel_block_sizes": sizes,
        "slot_mapping_enabled": torch.tensor([True, draw.chance(0.7)]),
        "dcp_sharded": torch.tensor([True, True]),
        "slot_mappings": torch.full((GROUPS, ROOM), 7),
        "cp_rank": 0,
        "CP_SIZE": 1,
        "CP_INTERLEAVE": 1,
        "PAD_ID": -1,
        "TRITON_BLOCK_SIZE": 16,
    }
    return (GROUPS, batch.requests + 1), call, ("slot_mappings",)


def _writes(draw: Draw) -> Launch:
    batch, several = DrawnBatch(draw), draw.chance(0.5)
    ends = [0, *accumulate(draw.count(0, 3) for _ in batch.rows)]
    table = batch.numbers(1, 99, GROUPS, ROWS, WIDTH)
    call = {
        "output": table if several else table[0].clone(),
        **({"output_stride": torch.full((GROUPS,), WIDTH)} if several else {}),
        "write_indices": batch.idx_mapping,
        "write_starts": batch.numbers(0, WIDTH - 3, batch.requests),
        "write_contents": batch.numbers(1, 99, ends[-1]),
        "write_cu_lens": int32(ends[1:]),
        "write_group_ids": batch.numbers(0, 1, batch.requests) if several else None,
        "BLOCK_SIZE": 2,
        "MULTI_GROUP": several,
    }
    return (batch.requests,), call, ("output",)


def _zeros(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        "seg_addrs": batch.numbers(1, 99, GROUPS, ROWS, WIDTH),
        "seg_block_strides": torch.full((GROUPS,), WIDTH),
        "seg_page_sizes": batch.numbers(1, WIDTH, GROUPS).long(),
        "block_ids": batch.idx_mapping.long(),
        "BLOCK_SIZE": 4,
    }
    return (batch.requests, GROUPS, 2), call, ("seg_addrs",)


def _accepted(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    call = {
        "idx_mapping": batch.idx_mapping,
        "num_sampled": batch.numbers(0, 4, batch.requests),
        "num_accepted": batch.numbers(5, 9, ROWS),
    }
    return (batch.requests,), call, ("num_accepted",)


def _same_accepted(draw: Draw) -> Launch:
    grid, call, written = _accepted(draw)
    return grid, {**call, "num_sampled": draw.count(1, 4)}, written


def _advance(draw: Draw) -> Launch:
    batch = DrawnBatch(draw)
    call = {
        **batch.lookup,
        "state_idx": batch.numbers(-1, 4, ROWS),
        "num_computed_tokens": batch.computed,
        "num_accepted_tokens": batch.numbers(0, 4, ROWS),
        "src_col": batch.numbers(7, 9, ROWS),
        "src_off": batch.numbers(7, 9, ROWS),
        "num_reqs": batch.requests,
        "BLOCK_SIZE": 4,
        "MAMBA_BLOCK_SIZE": BLOCK,
    }
    written = ("state_idx", "num_accepted_tokens", "src_col", "src_off")
    return (-(-batch.requests // 4),), call, written


def _states(draw: Draw, batch: DrawnBatch) -> dict[str, Any]:
    """Caches of a convolution and of a recurrence for each group, and its tables."""
    channels, entries = 4 * draw.count(1, 3), draw.count(4, 6)
    dim_first = draw.chance(0.4)
    dtype = draw.one((torch.float32, torch.bfloat16))
    window = (channels, entries) if dim_first else (entries, channels)
    blocks = ROWS * WIDTH + 1
    return {
        "conv": draw.normal(GROUPS, blocks, *window, dtype=dtype),
        "temporal": draw.normal(GROUPS, blocks, 2, draw.count(3, 9), dtype=dtype),
        "block_table_ptrs": int32(draw.slots(ROWS * WIDTH, blocks - 1))
        .reshape(1, ROWS, WIDTH)
        .repeat(GROUPS, 1, 1),
        "idx_mapping": batch.idx_mapping if draw.chance(0.8) else None,
        "num_reqs": batch.requests,
        "COPY_BLOCK_SIZE": 16,
        "CONV_STATE_DIM_FIRST": dim_first,
    }


def _copied_before(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    sources = batch.numbers(-1, 2, ROWS)
    call = {
        **_states(draw, batch),
        "mamba_state_idx": torch.maximum(sources, int32([0])) + batch.numbers(0, 1, ROWS),
        "src_col": sources,
        "token_bias": batch.numbers(0, 3, ROWS),
    }
    call["HAS_IDX_MAPPING"] = call["idx_mapping"] is not None
    return (batch.requests, 2 * GROUPS, 1), call, ("conv", "temporal")


def _copied_after(draw: Draw) -> Launch:
    batch = DrawnBatch(draw, absent=True)
    accepted, is_precomputed = batch.numbers(1, 4, ROWS), draw.chance(0.5)
    drafts, computed = batch.numbers(0, 3, ROWS), batch.numbers(4, 2 * BLOCK + 4, ROWS)
    scheduled = drafts + 1
    call = {
        **_states(draw, batch),
        "num_accepted_tokens": accepted,
        "mamba_state_idx": (computed + scheduled - 1) // BLOCK,
        "num_scheduled_tokens": None if is_precomputed else scheduled,
        "num_draft_tokens": None if is_precomputed else drafts,
        "num_computed_tokens": computed + accepted if is_precomputed else computed,
        "num_accepted_tokens_out": accepted.clone(),
        "block_size": BLOCK,
        "PRECOMPUTED_NEW_COMPUTED": is_precomputed,
    }
    call["HAS_IDX_MAPPING"] = call["idx_mapping"] is not None
    written = ("conv", "temporal", "num_accepted_tokens_out")
    return (batch.requests, 2 * GROUPS, 1), call, written


LAUNCHES: Final[LaunchMakers] = {
    "gather_block_tables": _gather,
    "slot_mappings": _slots,
    "apply_writes": _writes,
    "zero_blocks": _zeros,
    "scatter_accepted": _accepted,
    "fill_accepted": _same_accepted,
    "advance_blocks": _advance,
    "copy_before_step": _copied_before,
    "copy_after_step": _copied_after,
}
