"""Causal depthwise convolution over rows that continue a cached history of inputs.

The conv state of a slot is the last ``width - 1`` inputs; a speculating engine keeps ``width - 1``
plus one entry per draft, and the history of the next step begins ``accepted - 1`` entries in. All
rows are laid out as one stream, each row's history before its inputs, so that one convolution does
the work and every state to be kept is a stretch of the stream.

Semantics are those of ``_causal_conv1d_fwd_kernel`` and ``_causal_conv1d_update_kernel``
(``ops/causal_conv1d.py``) but for three cases in which the former is not what the cache means:
a block end nearer than ``width - 1`` to the start of its chunk (stored from a neighbour's inputs),
a chunk of fewer programs than block ends (not stored), and a chunk shorter than ``width - 1`` that
begins a block (stored over its own source). Here the state is always what the row has seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn import functional

from hybridwatch_engine.cpu.kernels.slots import column_slots, positions, repeated, row_bounds


@dataclass(frozen=True, slots=True)
class ConvolutionRow:
    """A row that is worked on.

    Attributes:
        first: Its first token.
        length: Its tokens, at least one.
        slot: Where its history lies; None for a row without.
        entry: First entry of the history in the slot.
    """

    first: int
    length: int
    slot: int | None
    entry: int = 0


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state to be stored.

    Attributes:
        slot: Where to.
        row: Whose state, as a place in the list of rows.
        after: The state begins this many entries into the row's history and inputs.
        entries: How many entries it has.
    """

    slot: int
    row: int
    after: int
    entries: int


@dataclass(frozen=True, slots=True)
class Filter:
    """Weights of one layer.

    Attributes:
        weight: (channels, width).
        bias: (channels,).
        activation: ``silu``, its other name ``swish``, True for it, or nothing.
    """

    weight: Tensor
    bias: Tensor | None
    activation: str | bool | None


def convolve(
    x: Tensor,
    conv_state: Tensor,
    layer: Filter,
    rows: Sequence[ConvolutionRow],
    stored: Sequence[StoredState],
) -> Tensor:
    """Convolve the rows and store their states; every history is read before a state is stored.

    Args:
        x: Inputs, (tokens, channels).
        conv_state: (slots, channels, entries), changed in place at the slots of ``stored`` only.
        layer: Weights.
        rows: Rows to work on; tokens of no row give zeros.
        stored: States to store.

    Returns:
        Outputs, (tokens, channels), in the type of ``x``.
    """
    if not rows:
        return torch.zeros_like(x, memory_format=torch.contiguous_format)
    past = layer.weight.shape[1] - 1
    history = conv_state.transpose(1, 2)
    bases = [0, *accumulate(past + row.length for row in rows)]
    stream = _lay_out(x, history, rows, past)
    output = _filter(stream, layer)
    output = output.index_select(
        0, positions((b, r.length) for b, r in zip(bases, rows, strict=False))
    )
    if stored:
        where = positions((bases[state.row] + state.after, state.entries) for state in stored)
        slots = repeated((state.slot, state.entries) for state in stored)
        entries = positions((0, state.entries) for state in stored)
        history[slots, entries] = stream.index_select(0, where).to(history.dtype)
    if len(output) == len(x):
        return output.to(x.dtype)
    out = torch.zeros_like(x, memory_format=torch.contiguous_format)
    out[positions((row.first, row.length) for row in rows)] = output.to(x.dtype)
    return out


def _lay_out(x: Tensor, history: Tensor, rows: Sequence[ConvolutionRow], past: int) -> Tensor:
    """Lay all rows out as one stream, in 32 bits; zeros are the history of a row without one."""
    slots = [row.slot for row in rows if row.slot is not None]
    cached = history.index_select(0, torch.tensor(slots, dtype=torch.long)).flatten(0, 1)
    blank = cached.new_zeros((past, cached.shape[1]))
    inputs, nothing = len(cached), len(cached) + len(x)
    order, used = [], 0
    for row in rows:
        if row.slot is None:
            order.append((nothing, past))
        else:
            order.append((used * history.shape[1] + row.entry, past))
            used += 1
        order.append((inputs + row.first, row.length))
    return torch.cat((cached, x.to(cached.dtype), blank)).index_select(0, positions(order)).float()


def _filter(stream: Tensor, layer: Filter) -> Tensor:
    """Convolve the whole stream, from the first place that has all its inputs in the stream."""
    taps = layer.weight.float().t().unbind()
    count = stream.shape[0] - len(taps) + 1
    total = stream[:count] * taps[0]
    for place, tap in enumerate(taps[1:], 1):
        total.addcmul_(stream[place : place + count], tap)
    if layer.bias is not None:
        total += layer.bias.float()
    return functional.silu(total, inplace=True) if layer.activation else total


def update(
    x: Tensor,
    conv_state: Tensor,
    layer: Filter,
    indices: Tensor,
    *,
    accepted: Tensor | None = None,
    starts: Tensor | None = None,
    source_column: Tensor | None = None,
    target_column: Tensor | None = None,
    null_block: int = 0,
) -> Tensor:
    """The convolution of a decode step.

    A row whose source is the null block, or which has no tokens, is left out.

    Args:
        x: (tokens, channels).
        conv_state: (slots, channels, entries).
        layer: Weights.
        indices: Slots of each row, (rows,) or (rows, columns).
        accepted: Tokens accepted after the previous step, (rows,), at least one each. With it the
            state keeps an entry for each token of this step, so that any of them may be accepted.
        starts: Cumulated tokens of the rows, (rows + 1,); one token each when absent.
        source_column: Column of each row's history; the first when absent.
        target_column: Column in which each row's state is stored; the first when absent.
        null_block: Slot that no request has.

    Returns:
        Outputs like ``x``.
    """
    sources = column_slots(indices, source_column).tolist()
    targets = column_slots(indices, target_column).tolist()
    offsets = [0] * len(sources) if accepted is None else [n - 1 for n in accepted.tolist()]
    past = layer.weight.shape[1] - 1
    rows: list[ConvolutionRow] = []
    stored: list[StoredState] = []
    for (first, length), source, target, offset in zip(
        row_bounds(len(sources), starts), sources, targets, offsets, strict=False
    ):
        if source == null_block or length == 0:
            continue
        if target != null_block:
            after, entries = (length, past) if accepted is None else (1, past - 1 + length)
            stored.append(StoredState(target, len(rows), after, entries))
        rows.append(ConvolutionRow(first, length, source, offset))
    return convolve(x, conv_state, layer, rows, stored)


@dataclass(frozen=True, slots=True)
class ConvolutionBlocks:
    """How prompts lie in cache blocks in ``all`` mode, each (rows,).

    Attributes:
        first: Column of the block that the first scheduled token is in.
        last: Column of the block that the last scheduled token is in.
        source: Column of each row's history.
        computed: Tokens computed before this step.
        size: Tokens of a block.
    """

    first: Tensor
    last: Tensor
    source: Tensor
    computed: Tensor
    size: int


def prefill(
    x: Tensor,
    conv_state: Tensor,
    layer: Filter,
    indices: Tensor,
    starts: Tensor,
    has_history: Tensor,
    blocks: ConvolutionBlocks,
    null_block: int = 0,
) -> Tensor:
    """The convolution of a prefill step in ``all`` mode.

    Stores each row's state at every block end that the step reaches before its last token, and
    after its last token. A row whose source is the null block, or without tokens, is left out.

    Args:
        x: (tokens, channels).
        conv_state: (slots, channels, entries).
        layer: Weights.
        indices: Block table, (rows, columns).
        starts: Cumulated tokens of the rows, (rows + 1,).
        has_history: Whether a row goes on from a cached state, (rows,).
        blocks: Where the rows lie in their blocks.
        null_block: Slot that no request has.

    Returns:
        Outputs like ``x``.
    """
    past = layer.weight.shape[1] - 1
    rows: list[ConvolutionRow] = []
    stored: list[StoredState] = []
    sources = column_slots(indices, blocks.source).tolist()
    facts = (blocks.first.tolist(), blocks.last.tolist(), blocks.computed.tolist())
    for number, ((begin, length), source, cached, first, last, computed) in enumerate(
        zip(row_bounds(len(sources), starts), sources, has_history.tolist(), *facts, strict=False)
    ):
        if source == null_block or length == 0:
            continue
        ends = [(column + 1) * blocks.size - computed for column in range(first, last)]
        slots = indices[number, first : last + 1].tolist()
        for slot, end in zip(slots, [*ends, length], strict=True):
            if slot != null_block:
                stored.append(StoredState(slot, len(rows), end, past))
        rows.append(ConvolutionRow(begin, length, source if cached else None))
    return convolve(x, conv_state, layer, rows, stored)
