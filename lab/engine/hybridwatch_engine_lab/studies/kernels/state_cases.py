"""Random calls of the state update and of the chunk scan."""

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.case import KernelCase
from hybridwatch_engine_lab.studies.kernels.draw import NULL_BLOCK, Draw, int32

UPDATE_FORMS = ("drafts", "drafts in all mode", "all mode", "no drafts now", "plain")


def _shape(draw: Draw) -> tuple[int, int, int, int]:
    """Heads, groups, channels and entries."""
    groups = draw.one((1, 1, 2, 4))
    return groups * draw.one((1, 2, 4)), groups, draw.one((4, 8, 20)), draw.one((8, 16, 64))


def _layer(draw: Draw, tokens: int, *, tied: bool) -> dict[str, Any]:
    """Inputs of all tokens; tied heads have one rate and one step size each, as in Mamba2."""
    heads, groups, channels, entries = _shape(draw)
    rate = -torch.exp(draw.normal(heads, 1 if tied else channels, 1 if tied else entries).float())
    step = draw.normal(tokens, heads, 1 if tied else channels)
    bias = draw.normal(heads, 1 if tied else channels, dtype=torch.float32)
    return {
        "x": draw.normal(tokens, heads, channels),
        "dt": step.expand(tokens, heads, channels),
        "a": rate.expand(heads, channels, entries),
        "b": draw.normal(tokens, groups, entries),
        "c": draw.normal(tokens, groups, entries),
        "d": draw.normal(heads, 1, dtype=torch.float32).expand(heads, channels),
        "dt_bias": bias.expand(heads, channels),
        "z": draw.normal(tokens, heads, channels) if draw.chance(0.2) else None,
        "dt_softplus": True,
        "out": torch.full((tokens, heads, channels), torch.nan, dtype=draw.dtype),
    }


def draw_update(draw: Draw) -> KernelCase:
    """A decode step in one of the forms."""
    form = draw.one(UPDATE_FORMS)
    rows, drafts = draw.count(1, 6), 0 if form in ("all mode", "plain") else draw.count(0, 5)
    columns = 1 + drafts + ("all mode" in form) * 2
    slots = rows * columns
    table = int32(draw.slots(slots, slots + 2)).reshape(rows, columns)
    live = [not draw.chance(0.15) for _ in range(rows)]
    for row, alive in enumerate(live):
        table[row] = table[row] if alive else NULL_BLOCK
    lengths, call = [1] * rows, dict[str, Any]()
    if form.startswith("drafts"):
        lengths = [draw.count(1, 1 + drafts) if a else draw.count(0, 1) for a in live]
        call["num_accepted_tokens"] = int32([draw.count(1, 1 + drafts) for _ in range(rows)])
        call["cu_seqlens"] = int32([0, *accumulate(lengths)])
    call |= _slots(draw, table, drafts, form)
    # A padded batch has tokens behind the last row.
    behind = draw.count(0, 2) if form.startswith("drafts") else 0
    tokens = torch.tensor([a for a, n in zip(live, lengths, strict=True) for _ in range(n)]).bool()
    tokens = torch.cat((tokens, torch.zeros(behind, dtype=torch.bool)))
    call |= _layer(draw, len(tokens), tied=form == "plain" or draw.chance(0.7))
    call["state"] = draw.cache(slots + 2, *call["a"].shape, dtype=draw.state_dtype())
    return KernelCase("state_update", form, call, str(draw.dtype), ("state",), "out", tokens)


def _slots(draw: Draw, table: Tensor, drafts: int, form: str) -> dict[str, Tensor]:
    """Where states are read and written; in ``all`` mode not in the same columns."""
    if "all mode" not in form:
        slots = table[:, 0] if form == "plain" else table
        return {"state_batch_indices": slots, "dst_state_batch_indices": slots}
    rows, window = len(table), torch.arange(1 + drafts)
    read = torch.tensor([draw.count(0, 1) for _ in range(rows)]).unsqueeze(1)
    written = read + torch.tensor([draw.count(0, 1) for _ in range(rows)]).unsqueeze(1)
    sources, targets = table.gather(1, read + window), table.gather(1, written + window)
    if form == "all mode":
        sources, targets = sources.squeeze(1), targets.squeeze(1)
    return {"state_batch_indices": sources, "dst_state_batch_indices": targets}


def draw_scan(draw: Draw) -> KernelCase:
    """A prefill step cut into chunks as vLLM's metadata cuts it."""
    size, rows = draw.one((8, 16, 32)), draw.count(1, 4)
    computed = [draw.one((0, size, draw.count(1, 3 * size))) for _ in range(rows)]
    lengths = [draw.one((1, size, draw.count(1, 4 * size))) for _ in range(rows)]
    cuts = [_cut(c, n, size) for c, n in zip(computed, lengths, strict=True)]
    tokens = sum(lengths)
    layer = _layer(draw, tokens, tied=True)
    heads, channels, entries = layer["a"].shape
    state_dtype, initial = draw.state_dtype(), None
    if draw.chance(0.7):
        started = torch.tensor([c > 0 for c in computed]).reshape(-1, 1, 1, 1)
        initial = draw.normal(rows, heads, channels, entries, dtype=state_dtype) * started
    call = {
        "x": layer["x"],
        "dt": layer["dt"][..., 0],
        "a": layer["a"][:, 0, 0].contiguous(),
        "b": layer["b"],
        "c": layer["c"],
        "d": layer["d"][:, 0].contiguous() if draw.chance(0.8) else None,
        "z": layer["z"],
        "dt_bias": layer["dt_bias"][:, 0].contiguous(),
        "out": layer["out"],
        "chunk_size": size,
        "cu_seqlens": int32([0, *accumulate(lengths)]),
        "cu_chunk_seqlens": int32([0, *accumulate(n for cut in cuts for n in cut)]),
        "last_chunk_indices": int32([end - 1 for end in accumulate(len(cut) for cut in cuts)]),
        "seq_idx": int32([row for row, cut in enumerate(cuts) for _ in cut]),
        "initial_states": initial,
        "dt_limit": draw.one(((0.0, float("inf")), (0.0, float("inf")), (0.1, 1.0))),
        "state_dtype": state_dtype,
    }
    form = "from states" if initial is not None else "from nothing"
    checked = ("returned",), "out", torch.ones(tokens, dtype=torch.bool)
    # Triton's interpreter cannot multiply 16-bit numbers, and this kernel does.
    interpretable = draw.dtype is torch.float32
    return KernelCase("chunk_scan", form, call, str(draw.dtype), *checked, interpretable)


def _cut(computed: int, length: int, size: int) -> list[int]:
    """Lengths of a row's chunks: the first ends where a chunk would end from the row's start."""
    first = min(length, -computed % size)
    whole, rest = divmod(length - first, size)
    return [n for n in (first, *[size] * whole, rest) if n]


def draw_selective_scan(draw: Draw) -> KernelCase:
    """A prefill step of Mamba1; of the real kernel there is no interpreter."""
    rows = draw.count(1, 4)
    lengths = [draw.one((1, 2, draw.count(1, 40))) for _ in range(rows)]
    live = [not draw.chance(0.15) for _ in range(rows)]
    slots = [s if a else NULL_BLOCK for s, a in zip(draw.slots(rows, rows + 2), live, strict=True)]
    call = _single_head(draw, sum(lengths))
    call |= {
        "starts": int32([0, *accumulate(lengths)]),
        "slots": int32(slots),
        "is_known": torch.tensor([draw.chance(0.6) for _ in range(rows)]),
        "states": draw.cache(rows + 2, *call["a"].shape, dtype=draw.state_dtype()),
    }
    form = "gated" if call["z"] is not None else "not gated"
    tokens = torch.tensor([a for a, n in zip(live, lengths, strict=True) for _ in range(n)]).bool()
    return KernelCase(
        "selective_scan", form, call, str(draw.dtype), ("states",), "returned", tokens, False
    )


def draw_one_head_update(draw: Draw) -> KernelCase:
    """A decode step of Mamba1."""
    rows = draw.count(1, 6)
    table = [s if not draw.chance(0.15) else NULL_BLOCK for s in draw.slots(rows, rows + 2)]
    call = _single_head(draw, rows)
    slots = int32(table)
    call |= {
        "dt_softplus": True,
        "out": torch.full_like(call["x"], torch.nan),
        "state_batch_indices": slots,
        "dst_state_batch_indices": slots,
        "state": draw.cache(rows + 2, *call["a"].shape, dtype=draw.state_dtype()),
    }
    tokens = slots != NULL_BLOCK
    return KernelCase(
        "state_update_one_head", "plain", call, str(draw.dtype), ("state",), "out", tokens
    )


def _single_head(draw: Draw, tokens: int) -> dict[str, Any]:
    """Inputs of all tokens of a layer of Mamba1, tokens first."""
    channels, entries = draw.one((4, 8, 40)), draw.one((8, 16))
    return {
        "x": draw.normal(tokens, channels),
        "dt": draw.normal(tokens, channels),
        "a": -torch.exp(draw.normal(channels, entries).float()),
        "b": draw.normal(tokens, entries),
        "c": draw.normal(tokens, entries),
        "d": draw.normal(channels, dtype=torch.float32),
        "dt_bias": draw.normal(channels, dtype=torch.float32),
        "z": draw.normal(tokens, channels) if draw.chance(0.7) else None,
    }
