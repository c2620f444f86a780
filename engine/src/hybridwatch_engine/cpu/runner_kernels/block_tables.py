"""Block tables and slot mappings (``v1/worker/gpu/block_table.py``, ``buffer_utils.py``)."""

import ctypes
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
