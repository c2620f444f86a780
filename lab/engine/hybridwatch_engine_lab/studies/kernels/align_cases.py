"""Random calls of the copies of ``align`` mode."""

from typing import Any

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.case import KernelCase
from hybridwatch_engine_lab.studies.kernels.draw import Draw, int32

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
