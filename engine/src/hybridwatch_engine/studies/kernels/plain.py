"""The kernels as loops over rows, tokens and slots in 64 bits, from their definitions alone.

Nothing is shared with the kernels and nothing is fast: a history is a list of inputs, a state is
stored when its token has been seen. Caches come in 64 bits, so that nothing is rounded.
"""

from typing import Any

import torch
from torch import Tensor

from hybridwatch_engine.studies.kernels.one_head import OneHead


def _activated(value: Tensor, activation: Any) -> Tensor:
    return value / (1 + torch.exp(-value)) if activation in ("silu", "swish", True) else value


def _convolved(seen: list[Tensor], weight: Tensor, bias: Tensor | None, activation: Any) -> Tensor:
    """The output at the newest of the inputs."""
    width = weight.shape[1]
    total = sum(weight[:, tap].double() * seen[len(seen) - width + tap] for tap in range(width))
    return _activated(total if bias is None else total + bias.double(), activation)


def _entry(values: Tensor | None, place: int, absent: int) -> int:
    return absent if values is None else int(values[place])


def conv_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    activation: Any,
    conv_state_indices: Tensor,
    num_accepted_tokens: Tensor | None = None,
    query_start_loc: Tensor | None = None,
    block_idx_last_scheduled_token: Tensor | None = None,
    initial_state_idx: Tensor | None = None,
    **_: Any,
) -> Tensor:
    """A decode step of the convolution; sees states as they were before the step."""
    before, past = conv_state.clone(), weight.shape[1] - 1
    out = torch.zeros(x.shape, dtype=torch.double)
    for row in range(len(conv_state_indices)):
        slots = conv_state_indices[row].reshape(-1)
        source = int(slots[_entry(initial_state_idx, row, 0)])
        target = int(slots[_entry(block_idx_last_scheduled_token, row, 0)])
        first, after = _entry(query_start_loc, row, row), _entry(query_start_loc, row + 1, row + 1)
        if source == 0 or first == after:
            continue
        older = _entry(num_accepted_tokens, row, 1) - 1
        seen = [before[source, :, older + entry] for entry in range(past)]
        for token in range(first, after):
            seen.append(x[token].double())
            out[token] = _convolved(seen, weight, bias, activation)
        # One entry more than the history for each draft, so that any of them may be accepted.
        keep = past if num_accepted_tokens is None else past + after - first - 1
        for entry, value in enumerate(seen[len(seen) - keep :]):
            if target:
                conv_state[target, :, entry] = value
    return out


def conv_prefill(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    conv_states: Tensor,
    query_start_loc: Tensor,
    cache_indices: Tensor,
    has_initial_state: Tensor,
    activation: Any,
    initial_state_idx: Tensor,
    num_computed_tokens: Tensor,
    block_size_to_align: int,
    **_: Any,
) -> Tensor:
    """A prefill step of the convolution in ``all`` mode: a state at block ends and at the end."""
    before, past = conv_states.clone(), weight.shape[1] - 1
    out = torch.zeros(x.shape[1], x.shape[0], dtype=torch.double)
    for row in range(len(cache_indices)):
        first, after = int(query_start_loc[row]), int(query_start_loc[row + 1])
        source = int(cache_indices[row, int(initial_state_idx[row])])
        if source == 0 or first == after:
            continue
        blank = torch.zeros(x.shape[0], dtype=torch.double)
        cached = bool(has_initial_state[row])
        seen = [before[source, :, entry] if cached else blank for entry in range(past)]
        computed = int(num_computed_tokens[row])
        for token in range(first, after):
            seen.append(x[:, token].double())
            out[token] = _convolved(seen, weight, bias, activation)
            computed += 1
            if computed % block_size_to_align and token != after - 1:
                continue
            target = int(cache_indices[row, (computed - 1) // block_size_to_align])
            for entry, value in enumerate(seen[-past:]):
                if target:
                    conv_states[target, :, entry] = value
    return out


def _softplus(value: Tensor) -> Tensor:
    return torch.where(value > 40, value, torch.log1p(torch.exp(value.clamp(max=40))))


def _recurrence(state: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """One token of one row: changes the state, (heads, channels, entries), and gives its output."""
    heads = state.shape[0]
    group = [head * len(b) // heads for head in range(heads)]
    state *= torch.exp(dt.unsqueeze(-1) * a)
    state += (dt * x).unsqueeze(-1) * b[group].unsqueeze(1)
    return (state * c[group].unsqueeze(1)).sum(-1)


def _added(x: Tensor, skip: Tensor | None, gate: Tensor | None) -> tuple[Tensor, Tensor]:
    """What is added to an output and what it is multiplied by."""
    plus = torch.zeros_like(x) if skip is None else x * skip.double().reshape(len(skip), -1)
    return plus, torch.ones_like(x) if gate is None else _activated(gate.double(), "silu")


def state_update(
    state: Tensor,
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor,
    dt_bias: Tensor,
    *,
    z: Tensor | None,
    dt_softplus: bool,
    out: Tensor,
    state_batch_indices: Tensor,
    dst_state_batch_indices: Tensor | None = None,
    num_accepted_tokens: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> None:
    """A decode step of the state; sees states as they were before the step."""
    before = state.clone()
    reads = state_batch_indices.reshape(len(state_batch_indices), -1)
    writes = reads if dst_state_batch_indices is None else dst_state_batch_indices
    writes = writes.reshape(len(writes), -1)
    rows = len(reads) if cu_seqlens is None else len(cu_seqlens) - 1
    for row in range(rows):
        first, after = _entry(cu_seqlens, row, row), _entry(cu_seqlens, row + 1, row + 1)
        source = int(reads[row, _entry(num_accepted_tokens, row, 1) - 1])
        if source == 0 or first == after:
            continue
        held = before[source].clone()
        for token in range(first, after):
            step = dt[token].double() + dt_bias.double()
            step = _softplus(step) if dt_softplus else step
            value = x[token].double()
            output = _recurrence(
                held, value, step, a.double(), b[token].double(), c[token].double()
            )
            plus, times = _added(value, d, None if z is None else z[token])
            out[token] = (output + plus) * times
            column = 0 if num_accepted_tokens is None else token - first
            kept = num_accepted_tokens is not None or token == after - 1
            if kept and int(writes[row, column]):
                state[int(writes[row, column])] = held


def chunk_scan(
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    chunk_size: int,  # noqa: ARG001
    out: Tensor,
    *,
    d: Tensor | None,
    z: Tensor | None,
    dt_bias: Tensor | None,
    initial_states: Tensor | None,
    seq_idx: Tensor,
    cu_chunk_seqlens: Tensor,
    dt_limit: tuple[float, float],
    **_: Any,
) -> Tensor:
    """A prefill step of the state, token by token; the state after each chunk."""
    heads, channels = x.shape[1:]
    states = torch.zeros(len(seq_idx), heads, channels, b.shape[2], dtype=torch.double)
    held = torch.zeros_like(states[0])
    for chunk, row in enumerate(seq_idx.tolist()):
        if chunk == 0 or int(seq_idx[chunk - 1]) != row:
            held.zero_()
            if initial_states is not None:
                held += initial_states[row].double()
        for token in range(int(cu_chunk_seqlens[chunk]), int(cu_chunk_seqlens[chunk + 1])):
            step = dt[token].double() if dt_bias is None else dt[token].double() + dt_bias.double()
            step = _softplus(step).clamp(*dt_limit).unsqueeze(-1).expand(heads, channels)
            value = x[token].double()
            rate = a.double().reshape(-1, 1, 1)
            output = _recurrence(held, value, step, rate, b[token].double(), c[token].double())
            plus, times = _added(value, d, None if z is None else z[token])
            out[token] = (output + plus) * times
        states[chunk] = held
    return states


def selective_scan(
    *, starts: Tensor, slots: Tensor, is_known: Tensor, states: Tensor, **call: Any
) -> Tensor:
    """A prefill step of Mamba1, token by token; the state after each row."""
    layer = OneHead.of(call)
    out = torch.zeros(layer.x.shape, dtype=torch.double)
    for row, slot in enumerate(slots.tolist()):
        if slot == 0:
            continue
        held = states[slot].clone() if is_known[row] else torch.zeros_like(states[slot])
        for token in range(int(starts[row]), int(starts[row + 1])):
            out[token] = _one_token(held, token, layer)
        states[slot] = held
    return out


def state_update_one_head(
    *, state: Tensor, out: Tensor, state_batch_indices: Tensor, **call: Any
) -> None:
    """A decode step of Mamba1, one token a row."""
    layer = OneHead.of(call)
    for row, slot in enumerate(state_batch_indices.tolist()):
        if slot:
            out[row] = _one_token(state[slot], row, layer)


def _one_token(held: Tensor, token: int, layer: OneHead) -> Tensor:
    """One token of Mamba1: changes the state, (channels, entries), and gives its output."""
    size = _softplus(layer.dt[token].double() + layer.dt_bias.double())
    value = layer.x[token].double()
    for channel in range(len(value)):
        held[channel] *= torch.exp(size[channel] * layer.a[channel].double())
        held[channel] += size[channel] * value[channel] * layer.b[token].double()
    said = (held * layer.c[token].double()).sum(1) + value * layer.d.double()
    return said if layer.z is None else said * _activated(layer.z[token].double(), "silu")


def align_before(
    conv: Tensor,
    temporal: Tensor,
    table: Tensor,
    targets: Tensor,
    sources: Tensor,
    later: Tensor,
    *,
    dim_first: bool,
) -> None:
    """Copies before a step; caches and tables of each group of layers first."""
    for request, (target, source, drafts) in enumerate(
        zip(targets.tolist(), sources.tolist(), later.tolist(), strict=True)
    ):
        if source not in (-1, target):
            _moved(conv, temporal, table, request, (source, target, drafts), dim_first=dim_first)


def _moved(
    conv: Tensor,
    temporal: Tensor,
    table: Tensor,
    request: int,
    move: tuple[int, int, int],
    *,
    dim_first: bool,
) -> None:
    source, target, later = move
    for group in range(len(table)):
        slots = table[group, request].tolist()
        temporal[group, slots[target]] = temporal[group, slots[source + later]]
        axes = (0, 2, 1) if dim_first else (0, 1, 2)
        windows = conv[group].permute(*axes)  # (slots, entries, channels)
        old = windows[slots[source]].clone()
        for entry in range(later, len(old)):
            windows[slots[target], entry - later] = old[entry]


def align_after(
    conv: Tensor,
    temporal: Tensor,
    table: Tensor,
    columns: Tensor,
    computed: Tensor,
    scheduled: Tensor,
    drafts: Tensor,
    accepted: Tensor,
    *,
    block_size: int,
    dim_first: bool,
) -> Tensor:
    """Copies after a step: of the state at the last block end that it has reached, if any."""
    counts = accepted.clone()
    for request in range(len(columns)):
        # The state of the first of these tokens is in the first place, and so on.
        first = int(computed[request] + scheduled[request] - drafts[request])
        ends = [
            place
            for place in range(int(accepted[request]))
            if (first + place) % block_size == 0 and first + place
        ]
        if not ends:
            continue
        target = (first + ends[-1]) // block_size - 1
        column = int(columns[request])
        if target == column:
            counts[request] = 1
        _moved(conv, temporal, table, request, (column, target, ends[-1]), dim_first=dim_first)
    return counts
