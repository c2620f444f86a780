"""Block tables, slot mappings, counts and copies of recurrent states, of ``v1/worker``.

The kernels are those of ``gpu/block_table.py``, ``gpu/buffer_utils.py``,
``gpu/model_states/mamba_hybrid.py`` and ``mamba_utils.py``.

In ``align`` mode a request works in one block. Before a step that works in another one the state
moves there; after a step that has passed a block's end with drafts the state at that end moves into
the block that has become full.
"""

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridwatch_engine.cpu.runner_kernels.launch import (
    Array,
    UnservedError,
    at_address,
    flat,
    real,
    stands_in_for,
)


@stands_in_for("977a2960")
def gather_block_tables(
    *,
    batch_idx_to_req_idx: Array,
    src_block_table_ptrs: Array,
    dst_block_table_ptrs: Array,
    block_table_strides: Array,
    num_blocks: Array,
    num_reqs: int,
    grid: tuple[int, int],
    **_: Any,
) -> None:
    """Rows of requests in the order of the batch; padded rows become zero."""
    groups, padded = grid
    rows = real(batch_idx_to_req_idx[:num_reqs])
    for group in range(groups):
        width = int(block_table_strides[group])
        held = at_address(src_block_table_ptrs[group], num_blocks.shape[1] * width)
        table = at_address(dst_block_table_ptrs[group], padded * width)
        table = table.reshape(padded, width)
        filled = np.arange(width) < num_blocks[group, rows][:, None]
        np.copyto(table[:num_reqs], held.reshape(-1, width)[rows], where=filled)
        table[num_reqs:] = 0


@stands_in_for("c70c4f84", "e4c4f6a8", knows_absent=True)
@stands_in_for("21a2aa94", "0aa972a1", knows_absent=False)
def slot_mappings(
    *,
    max_num_tokens: int,
    idx_mapping: Array,
    query_start_loc: Array,
    pos: Array,
    block_table_ptrs: Array,
    block_table_strides: Array,
    block_sizes: Array,
    slot_mappings: Array,
    knows_absent: bool,
    grid: tuple[int, int],
    kernel_block_sizes: Array | None = None,
    slot_mapping_enabled: Array | None = None,
    **constants: Any,
) -> None:
    """Slot of each token; tokens of absent requests, and places behind the last, get the pad."""
    if constants["CP_SIZE"] != 1:
        raise UnservedError
    groups, requests, pad = grid[0], grid[1] - 1, constants["PAD_ID"]
    starts = query_start_loc[: requests + 1]
    first, last = int(starts[0]), int(starts[-1])
    rows = np.repeat(idx_mapping[:requests], np.diff(starts))
    absent, positions = rows < 0, pos[first:last]
    if not knows_absent:  # up to 0.30.0
        real(rows)
    sizes = block_sizes if kernel_block_sizes is None else kernel_block_sizes
    for group in range(groups):
        slots = slot_mappings[group]
        slots[last:max_num_tokens] = pad
        if first == last:
            continue
        if slot_mapping_enabled is not None and not slot_mapping_enabled[group]:
            slots[first:last] = pad
            continue
        size = sizes[group]
        places = rows.astype(np.int64) * block_table_strides[group] + positions // size
        places[absent] = 0
        table = at_address(block_table_ptrs[group], int(places.max()) + 1)
        slots[first:last] = np.where(absent, pad, table[places] * size + positions % size)


@stands_in_for("6567cf5a", "778f1844")
def apply_writes(
    *,
    output: Array,
    output_stride: Any,
    write_indices: Array,
    write_starts: Array,
    write_contents: Array,
    write_cu_lens: Array,
    write_group_ids: Array | None,
    MULTI_GROUP: bool,  # noqa: N803 - the kernel's name
    grid: tuple[int],
    **_: Any,
) -> None:
    """Changes that the host has collected, one behind the other."""
    (writes,) = grid
    memory = None if MULTI_GROUP else flat(output)
    begin = 0
    for write in range(writes):
        row, start, end = int(write_indices[write]), int(write_starts[write]), write_cu_lens[write]
        content = write_contents[begin:end]
        if memory is not None:
            place = row * output_stride + start
            memory[place : place + len(content)] = content
        elif len(content) and write_group_ids is not None:
            group = write_group_ids[write]
            place = int(output[group]) + 4 * (row * int(output_stride[group]) + start)
            at_address(place, len(content))[:] = content
        begin = end


@stands_in_for("35dc800f")
def zero_blocks(
    *,
    seg_addrs: Array,
    seg_block_strides: Array,
    seg_page_sizes: Array,
    block_ids: Array,
    BLOCK_SIZE: int,  # noqa: N803 - the kernel's name
    grid: tuple[int, int, int],
    **_: Any,
) -> None:
    """Zeros into blocks of every cache, which are given by address; sizes are in four bytes."""
    blocks, segments, chunks = grid
    for segment in range(segments):
        size = 4 * min(int(seg_page_sizes[segment]), chunks * BLOCK_SIZE)
        for block in block_ids[:blocks].tolist():
            place = int(seg_addrs[segment]) + 4 * block * int(seg_block_strides[segment])
            ctypes.memset(place, 0, size)


@stands_in_for("1d32e510")
def scatter_accepted(
    *, idx_mapping: Array, num_sampled: Array, num_accepted: Array, grid: tuple[int], **_: Any
) -> None:
    """Accepted tokens of requests that are there, at least one each."""
    (requests,) = grid
    there = idx_mapping[:requests] >= 0
    num_accepted[idx_mapping[:requests][there]] = np.maximum(num_sampled[:requests][there], 1)


@stands_in_for("73cebf72")
def fill_accepted(
    *, idx_mapping: Array, num_accepted: Array, num_sampled: int, grid: tuple[int], **_: Any
) -> None:
    """The same number for every request that is there."""
    rows = idx_mapping[: grid[0]]
    num_accepted[rows[rows >= 0]] = num_sampled


@stands_in_for("43e5331e")
def advance_blocks(
    *,
    idx_mapping: Array,
    state_idx: Array,
    num_computed_tokens: Array,
    query_start_loc: Array,
    num_accepted_tokens: Array,
    src_col: Array,
    src_off: Array,
    num_reqs: int,
    MAMBA_BLOCK_SIZE: int,  # noqa: N803 - the kernel's name
    **_: Any,
) -> None:
    """The block that each request's step ends in, and where its state is before."""
    rows = real(idx_mapping[:num_reqs])
    before = state_idx[rows]
    src_col[rows] = before
    src_off[rows] = np.maximum(num_accepted_tokens[rows] - 1, 0)
    after = num_computed_tokens[rows] + np.diff(query_start_loc[: num_reqs + 1])
    state_idx[rows] = (after + MAMBA_BLOCK_SIZE - 1) // MAMBA_BLOCK_SIZE - 1
    num_accepted_tokens[rows[(before >= 0) & (before != state_idx[rows])]] = 1


@stands_in_for("50d23749", "281c4975", "58758b46", by_batch=True)
@stands_in_for("ef955ecf", by_batch=False)
def copy_before_step(
    *,
    mamba_state_idx: Array,
    src_col: Array,
    token_bias: Array,
    idx_mapping: Array | None,
    num_reqs: int,
    by_batch: bool,
    grid: tuple[int, ...],
    **places: Any,
) -> None:
    """States of requests whose step works in another block than the last.

    Block tables are in the order of the batch (``by_batch``) up to 0.31.0, of requests after.
    """
    for batch in range(num_reqs):
        row = batch if idx_mapping is None else int(idx_mapping[batch])
        if row < 0 or src_col[row] < 0 or src_col[row] == mamba_state_idx[row]:
            continue
        columns = int(src_col[row]), int(mamba_state_idx[row]), int(token_bias[row])
        for state in range(grid[1]):
            _copy(places, state, batch if by_batch else row, *columns)


@stands_in_for("383bb047", "60d1161b", by_batch=True)
@stands_in_for("4491ee70", by_batch=False)
def copy_after_step(
    *,
    num_accepted_tokens: Array,
    mamba_state_idx: Array,
    num_scheduled_tokens: Array | None,
    num_computed_tokens: Array,
    num_draft_tokens: Array | None,
    num_accepted_tokens_out: Array,
    idx_mapping: Array | None,
    num_reqs: int,
    block_size: int,
    by_batch: bool,
    grid: tuple[int, ...],
    **places: Any,
) -> None:
    """States at block ends that a step has passed or reached.

    Block tables are in the order of the batch (``by_batch``) up to 0.31.0, of requests after.
    """
    for batch in range(num_reqs):
        row = batch if idx_mapping is None else int(idx_mapping[batch])
        if row < 0:
            continue
        accepted, source = int(num_accepted_tokens[row]), int(mamba_state_idx[row])
        if num_scheduled_tokens is None or num_draft_tokens is None:
            certain = int(num_computed_tokens[row]) - accepted + 1
        else:
            certain = int(num_computed_tokens[row] + num_scheduled_tokens[row])
            certain -= int(num_draft_tokens[row])
        full = (certain + accepted - 1) // block_size
        later = full * block_size - certain
        if later < 0:
            continue
        if source == full - 1:
            num_accepted_tokens_out[row] = 1
        if source != full - 1 or later:
            for state in range(grid[1]):
                _copy(places, state, batch if by_batch else row, source, full - 1, later)


def _copy(
    places: Mapping[str, Any], state: int, row: int, source: int, target: int, later: int
) -> None:
    """Copy a request's state of one layer from column to column of its block table.

    Args:
        places: The kernel's arguments that say where states and tables are.
        state: Which of the states.
        row: Of the table.
        source: Column.
        target: Column.
        later: The state after so many tokens more: so many entries into the window of a
            convolution, so many columns on else.
    """

    def block(column: int) -> int:
        place = int(places["block_table_ptrs"][group]) + 4 * (stride * row + column)
        return base + size * int(at_address(place, 1)[0])

    names = "state_base_addrs", "state_block_strides", "state_elem_sizes", "state_inner_sizes"
    base, size, element, inner = (int(places[name][state]) for name in names)
    group, stride = int(places["state_group_indices"][state]), int(places["block_table_stride_req"])
    width = int(places["state_conv_widths"][state])
    if not width:
        ctypes.memmove(block(target), block(source + later), inner * element)
    elif places["CONV_STATE_DIM_FIRST"]:
        step = int(places["state_dim_row_stride"][state])
        for row_start in range(0, int(places["state_dim_row_count"][state]) * step, step):
            old = block(source) + row_start + later * element
            ctypes.memmove(block(target) + row_start, old, (width - later) * element)
    else:
        old = block(source) + later * inner * element
        ctypes.memmove(block(target), old, (width - later) * inner * element)
