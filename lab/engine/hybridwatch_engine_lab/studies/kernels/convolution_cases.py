"""Random calls of the convolution."""

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.case import KernelCase
from hybridwatch_engine_lab.studies.kernels.draw import NULL_BLOCK, Draw, int32

UPDATE_FORMS = ("drafts", "drafts in all mode", "all mode", "no drafts now", "plain")
BLOCK_M = 8
"""Tokens of one program of the Triton kernel: it stores a block end for each program but one."""


def _layer(draw: Draw, channels: int, width: int) -> dict[str, Any]:
    return {
        "weight": draw.normal(channels, width),
        "bias": draw.normal(channels) if draw.chance(0.7) else None,
        "activation": draw.one(("silu", "swish", None)),
    }


def _cache(draw: Draw, slots: int, channels: int, entries: int) -> Tensor:
    """A conv cache, (slots, channels, entries), in one of vLLM's two layouts."""
    dtype = draw.state_dtype()
    if draw.chance(0.5):
        return draw.cache(slots, channels, entries, dtype=dtype, values=draw.dtype)
    return draw.cache(slots, entries, channels, dtype=dtype, values=draw.dtype).transpose(1, 2)


def draw_update(draw: Draw) -> KernelCase:
    """A decode step in one of the forms."""
    form = draw.one(UPDATE_FORMS)
    rows, drafts = draw.count(1, 6), 0 if form in ("all mode", "plain") else draw.count(0, 5)
    channels, width = draw.count(1, 24), draw.count(2, 4)
    columns = {"all mode": 4, "plain": 1}.get(form, 1 + drafts) + ("in all" in form) * 3
    slots = rows * columns
    table = int32(draw.slots(slots, slots + 2)).reshape(rows, columns)
    lengths = [1] * rows
    call: dict[str, Any] = {"conv_state_indices": table[:, 0] if form == "plain" else table}
    if form.startswith("drafts"):
        lengths = [draw.count(1, 1 + drafts) for _ in range(rows)]
        accepted = [draw.count(1, 1 + drafts) for _ in range(rows)]
        call["num_accepted_tokens"] = int32(accepted)
        call["max_query_len"] = columns
    if "all mode" in form:
        sources = [draw.count(0, columns - 1 - drafts) for _ in range(rows)]
        stays = [draw.chance(0.5) for _ in range(rows)]
        last = columns - 1 - drafts
        targets = [min(s + (not stay), last) for s, stay in zip(sources, stays, strict=True)]
        call["initial_state_idx"] = int32(sources)
        call["block_idx_last_scheduled_token"] = int32(targets)
    live = [not draw.chance(0.15) for _ in range(rows)]
    for row, alive in enumerate(live):
        if not alive:
            table[row] = NULL_BLOCK
            lengths[row] = 0 if form.startswith("drafts") and draw.chance(0.5) else lengths[row]
    if form.startswith("drafts"):
        call["query_start_loc"] = int32([0, *accumulate(lengths)])
    tokens = torch.tensor([a for a, n in zip(live, lengths, strict=True) for _ in range(n)]).bool()
    call |= {"x": draw.normal(len(tokens), channels), **_layer(draw, channels, width)}
    call["conv_state"] = _cache(draw, slots + 2, channels, width - 1 + drafts)
    checked = ("conv_state",), "returned", tokens
    return KernelCase("conv_update", form, call, str(draw.dtype), *checked, _interpretable(draw))


def draw_prefill(draw: Draw) -> KernelCase:
    """A prefill step in ``all`` mode; some rows go on in the middle of a block."""
    rows, channels, width = draw.count(1, 4), draw.count(1, 24), draw.count(2, 4)
    size = draw.one((8, 16, 32))
    computed = [draw.one((0, size, 2 * size, draw.count(1, 3 * size))) for _ in range(rows)]
    lengths = [draw.one((1, 2, size, 2 * size, draw.count(1, 4 * size))) for _ in range(rows)]
    spans = list(zip(computed, lengths, strict=True))
    first, last = [c // size for c in computed], [(c + n - 1) // size for c, n in spans]
    columns = max(last) + 1
    slots = rows * columns
    table = int32(draw.slots(slots, slots + 2)).reshape(rows, columns)
    live = [not draw.chance(0.1) for _ in range(rows)]
    for row, alive in enumerate(live):
        table[row] = table[row] if alive else NULL_BLOCK
    # Upstream's convention for a row without earlier tokens is column 0.
    sources = [max(0, (c - 1) // size) for c in computed]
    tokens = torch.tensor([a for a, n in zip(live, lengths, strict=True) for _ in range(n)])
    call = {
        "x": draw.normal(len(tokens), channels).t(),
        "conv_states": _cache(draw, slots + 2, channels, width - 1 + draw.one((0, 0, 3))),
        "query_start_loc": int32([0, *accumulate(lengths)]),
        "cache_indices": table,
        "has_initial_state": torch.tensor([c > 0 for c in computed]),
        "block_idx_first_scheduled_token": int32(first),
        "block_idx_last_scheduled_token": int32(last),
        "initial_state_idx": int32(sources),
        "num_computed_tokens": int32(computed),
        "block_size_to_align": size,
        **_layer(draw, channels, width),
    }
    fits = _interpretable(draw) and all(_triton_stores(c, n, size, width - 1) for c, n in spans)
    form = "whole blocks" if not any(c % size for c in computed) else "within a block"
    return KernelCase(
        "conv_prefill", form, call, str(draw.dtype), ("conv_states",), "returned", tokens, fits
    )


def _interpretable(draw: Draw) -> bool:
    """Triton's interpreter cannot multiply 16-bit numbers, and this kernel does."""
    return draw.dtype is torch.float32


def _triton_stores(computed: int, length: int, size: int, past: int) -> bool:
    """Whether the Triton kernel stores the states of such a row (``convolution``)."""
    ends = (computed + length - 1) // size - computed // size
    nearest = size - computed % size
    return length >= past and (not ends or (nearest >= past and ends < -(-length // BLOCK_M)))
