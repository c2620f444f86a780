"""Random calls of the kernels; the same number and seed give the same case in any process."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import NULL_BLOCK, Draw, KernelCase, int32

GROUPS = 2
"""Groups of layers, each with a block table of its own."""


def _caches(draw: Draw, requests: int, columns: int, drafts: int) -> dict[str, Any]:
    slots = requests * columns
    dtype, dim_first = draw.state_dtype(), draw.chance(0.3)
    channels, entries = 4 * draw.count(1, 4), draw.count(1, 3) + drafts
    window = (channels, entries) if dim_first else (entries, channels)
    tables = [draw.slots(slots, slots + 2) for _ in range(GROUPS)]
    return {
        "conv": _stacked(draw, slots + 2, window, dtype),
        "temporal": _stacked(draw, slots + 2, (2, 4, 8), torch.float32),
        "table": torch.stack([int32(table).reshape(requests, columns) for table in tables]),
        "dim_first": dim_first,
    }


def _stacked(draw: Draw, slots: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """One cache for each group, in one memory."""
    numbers = torch.Size(shape).numel()
    page = numbers + 4 * draw.count(0, 2)
    memory = draw.normal(GROUPS, slots + 1, page, dtype=dtype)
    return memory[..., :numbers].unflatten(-1, shape)


def draw_before(draw: Draw) -> KernelCase:
    """Requests that begin, stay in their block or move to the next."""
    requests, drafts = draw.count(1, 5), draw.count(0, 5)
    sources = [draw.count(-1, 2) for _ in range(requests)]
    targets = [max(source, 0) + draw.count(0, 1) for source in sources]
    call = {
        **_caches(draw, requests, 4 + drafts, drafts),
        "sources": int32(sources),
        "targets": int32(targets),
        "later": int32([draw.count(0, drafts) for _ in range(requests)]),
    }
    nothing = torch.zeros(0, dtype=torch.bool)
    return KernelCase(
        "align_before", "", call, str(call["conv"].dtype), ("conv", "temporal"), "", nothing
    )


def draw_after(draw: Draw) -> KernelCase:
    """Steps with and without drafts, some of which have passed a block end."""
    requests, size, drafts = draw.count(1, 5), draw.one((4, 8)), draw.count(0, 3)
    steps = [_step(draw, size, drafts) for _ in range(requests)]
    names = ("columns", "computed", "scheduled", "drafts", "accepted")
    call = {
        **_caches(draw, requests, 6 + drafts, drafts),
        **{
            name: int32(values)
            for name, values in zip(names, zip(*steps, strict=True), strict=True)
        },
        "block_size": size,
    }
    every = torch.ones(requests, dtype=torch.bool)
    return KernelCase(
        "align_after", "", call, str(call["conv"].dtype), ("conv", "temporal"), "returned", every
    )


def _step(draw: Draw, size: int, most: int) -> tuple[int, int, int, int, int]:
    """Column, computed, scheduled, drafts and accepted of a request, often near a block end."""
    computed = max(0, draw.count(1, 3) * size - draw.count(0, 5))
    drafts = draw.count(0, most) if computed else 0
    scheduled = 1 + drafts if computed else draw.count(1, 2 * size)
    column = (computed + scheduled - 1) // size
    return column, computed, scheduled, drafts, draw.count(1, 1 + drafts)


UPDATE_FORMS = ("drafts", "drafts in all mode", "all mode", "no drafts now", "plain")
BLOCK_M = 8
"""Tokens of one program of the Triton kernel: it stores a block end for each program but one."""


def _convolution_layer(draw: Draw, channels: int, width: int) -> dict[str, Any]:
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


def draw_convolution_update(draw: Draw) -> KernelCase:
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
    call |= {"x": draw.normal(len(tokens), channels), **_convolution_layer(draw, channels, width)}
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
        **_convolution_layer(draw, channels, width),
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
        "has_initial_state": torch.tensor([draw.chance(0.6) for _ in range(rows)]),
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


_DRAWN: Final[Sequence[Callable[[Draw], KernelCase]]] = (
    draw_convolution_update,
    draw_update,
    draw_prefill,
    draw_scan,
    draw_before,
    draw_after,
    draw_selective_scan,
    draw_one_head_update,
)
_DTYPES: Final = (torch.float32, torch.bfloat16)


def draw_case(number: int, seed: int) -> KernelCase:
    """The case of this number; kernels and types take turns."""
    dtype = _DTYPES[number // len(_DRAWN) % len(_DTYPES)]
    return _DRAWN[number % len(_DRAWN)](Draw(seed * 1_000_003 + number, dtype))
