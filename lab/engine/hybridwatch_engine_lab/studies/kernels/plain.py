"""The kernels as loops over rows, tokens and slots in 64 bits, from their definitions alone.

Nothing is shared with the kernels and nothing is fast: a history is a list of inputs, a state is
stored when its token has been seen. Caches come in 64 bits, so that nothing is rounded.
"""

from typing import Any

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.calls import (
    AlignAfter,
    Caches,
    ChunkScan,
    ConvPrefill,
    ConvUpdate,
    OneHead,
    StateUpdate,
)


def _activated(value: Tensor, activation: Any) -> Tensor:
    return value / (1 + torch.exp(-value)) if activation in ("silu", "swish", True) else value


def _convolved(seen: list[Tensor], weight: Tensor, bias: Tensor | None, activation: Any) -> Tensor:
    """The output at the newest of the inputs."""
    width = weight.shape[1]
    total = sum(weight[:, tap].double() * seen[len(seen) - width + tap] for tap in range(width))
    return _activated(total if bias is None else total + bias.double(), activation)


def _entry(values: Tensor | None, place: int, absent: int) -> int:
    return absent if values is None else int(values[place])


def conv_update(**call: Any) -> Tensor:
    """A decode step of the convolution; sees states as they were before the step."""
    step = ConvUpdate.of(call)
    starts, drafted = step.query_start_loc, step.num_accepted_tokens
    before, past = step.conv_state.clone(), step.weight.shape[1] - 1
    out = torch.zeros(step.x.shape, dtype=torch.double)
    for row in range(len(step.conv_state_indices)):
        slots = step.conv_state_indices[row].reshape(-1)
        source = int(slots[_entry(step.initial_state_idx, row, 0)])
        target = int(slots[_entry(step.block_idx_last_scheduled_token, row, 0)])
        first, after = _entry(starts, row, row), _entry(starts, row + 1, row + 1)
        if source == 0 or first == after:
            continue
        older = _entry(drafted, row, 1) - 1
        seen = [before[source, :, older + entry] for entry in range(past)]
        for token in range(first, after):
            seen.append(step.x[token].double())
            out[token] = _convolved(seen, step.weight, step.bias, step.activation)
        # One entry more than the history for each draft, so that any of them may be accepted.
        keep = past if drafted is None else past + after - first - 1
        for entry, value in enumerate(seen[len(seen) - keep :]):
            if target:
                step.conv_state[target, :, entry] = value
    return out


def conv_prefill(**call: Any) -> Tensor:
    """A prefill step of the convolution in ``all`` mode: a state at block ends and at the end."""
    step = ConvPrefill.of(call)
    before, past = step.conv_states.clone(), step.weight.shape[1] - 1
    out = torch.zeros(step.x.shape[1], step.x.shape[0], dtype=torch.double)
    for row in range(len(step.cache_indices)):
        first, after = int(step.query_start_loc[row]), int(step.query_start_loc[row + 1])
        source = int(step.cache_indices[row, int(step.initial_state_idx[row])])
        if source == 0 or first == after:
            continue
        blank = torch.zeros(step.x.shape[0], dtype=torch.double)
        cached = bool(step.has_initial_state[row])
        seen = [before[source, :, entry] if cached else blank for entry in range(past)]
        computed = int(step.num_computed_tokens[row])
        for token in range(first, after):
            seen.append(step.x[:, token].double())
            out[token] = _convolved(seen, step.weight, step.bias, step.activation)
            computed += 1
            if computed % step.block_size_to_align and token != after - 1:
                continue
            target = int(step.cache_indices[row, (computed - 1) // step.block_size_to_align])
            for entry, value in enumerate(seen[-past:]):
                if target:
                    step.conv_states[target, :, entry] = value
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


def state_update(**call: Any) -> None:
    """A decode step of the state; sees states as they were before the step."""
    step = StateUpdate.of(call)
    before, accepted = step.state.clone(), step.num_accepted_tokens
    reads = step.state_batch_indices.reshape(len(step.state_batch_indices), -1)
    writes = reads if step.dst_state_batch_indices is None else step.dst_state_batch_indices
    writes = writes.reshape(len(writes), -1)
    rows = len(reads) if step.cu_seqlens is None else len(step.cu_seqlens) - 1
    for row in range(rows):
        first, after = _entry(step.cu_seqlens, row, row), _entry(step.cu_seqlens, row + 1, row + 1)
        source = int(reads[row, _entry(accepted, row, 1) - 1])
        if source == 0 or first == after:
            continue
        held = before[source].clone()
        for token in range(first, after):
            step.out[token] = _updated(held, token, step)
            column = 0 if accepted is None else token - first
            kept = accepted is not None or token == after - 1
            if kept and int(writes[row, column]):
                step.state[int(writes[row, column])] = held


def _updated(held: Tensor, token: int, step: StateUpdate) -> Tensor:
    """One token of a decode step: changes the state, and gives its output."""
    size = step.dt[token].double() + step.dt_bias.double()
    size = _softplus(size) if step.dt_softplus else size
    value, b, c = (every[token].double() for every in (step.x, step.b, step.c))
    output = _recurrence(held, value, size, step.a.double(), b, c)
    plus, times = _added(value, step.d, None if step.z is None else step.z[token])
    return (output + plus) * times


def chunk_scan(**call: Any) -> Tensor:
    """A prefill step of the state, token by token; the state after each chunk."""
    step = ChunkScan.of(call)
    heads, channels = step.x.shape[1:]
    states = torch.zeros(len(step.seq_idx), heads, channels, step.b.shape[2], dtype=torch.double)
    held = torch.zeros_like(states[0])
    for chunk, row in enumerate(step.seq_idx.tolist()):
        if chunk == 0 or int(step.seq_idx[chunk - 1]) != row:
            held.zero_()
            if step.initial_states is not None:
                held += step.initial_states[row].double()
        first, after = step.cu_chunk_seqlens[chunk : chunk + 2].tolist()
        for token in range(first, after):
            step.out[token] = _scanned(held, token, step)
        states[chunk] = held
    return states


def _scanned(held: Tensor, token: int, step: ChunkScan) -> Tensor:
    """One token of a prefill step: changes the state, and gives its output."""
    size = step.dt[token].double()
    size = size if step.dt_bias is None else size + step.dt_bias.double()
    size = _softplus(size).clamp(*step.dt_limit).unsqueeze(-1).expand(step.x.shape[1:])
    value, b, c = (every[token].double() for every in (step.x, step.b, step.c))
    output = _recurrence(held, value, size, step.a.double().reshape(-1, 1, 1), b, c)
    plus, times = _added(value, step.d, None if step.z is None else step.z[token])
    return (output + plus) * times


def selective_scan(
    *, starts: Tensor, slots: Tensor, has_initial_state: Tensor, states: Tensor, **call: Any
) -> Tensor:
    """A prefill step of Mamba1, token by token; the state after each row."""
    layer = OneHead.of(call)
    out = torch.zeros(layer.x.shape, dtype=torch.double)
    for row, slot in enumerate(slots.tolist()):
        if slot == 0:
            continue
        held = states[slot].clone() if has_initial_state[row] else torch.zeros_like(states[slot])
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


def align_before(*, targets: Tensor, sources: Tensor, later: Tensor, **call: Any) -> None:
    """Copies before a step."""
    caches = Caches.of(call)
    for request, (target, source, drafts) in enumerate(
        zip(targets.tolist(), sources.tolist(), later.tolist(), strict=True)
    ):
        if source not in (-1, target):
            _moved(caches, request, source, target, drafts)


def _moved(caches: Caches, request: int, source: int, target: int, later: int) -> None:
    for group in range(len(caches.table)):
        slots = caches.table[group, request].tolist()
        caches.temporal[group, slots[target]] = caches.temporal[group, slots[source + later]]
        axes = (0, 2, 1) if caches.dim_first else (0, 1, 2)
        windows = caches.conv[group].permute(*axes)  # (slots, entries, channels)
        old = windows[slots[source]].clone()
        for entry in range(later, len(old)):
            windows[slots[target], entry - later] = old[entry]


def align_after(**call: Any) -> Tensor:
    """Copies after a step: of the state at the last block end that it has reached, if any."""
    caches, step = Caches.of(call), AlignAfter.of(call)
    counts = step.accepted.clone()
    for request in range(len(step.columns)):
        # The state of the first of these tokens is in the first place, and so on.
        first = int(step.computed[request] + step.scheduled[request] - step.drafts[request])
        ends = [
            place
            for place in range(int(step.accepted[request]))
            if (first + place) % step.block_size == 0 and first + place
        ]
        if not ends:
            continue
        target = (first + ends[-1]) // step.block_size - 1
        column = int(step.columns[request])
        if target == column:
            counts[request] = 1
        _moved(caches, request, column, target, ends[-1])
    return counts
