"""Calls of vLLM's functions in the form of the cases, patched or not.

What they compute with stands here by the names that cases have for it. Shapes are in tokens (all
rows of a step behind each other), rows (requests), channels, heads and entries of a state. Caches
have slots, and slot 0 is unused.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, Final, Self

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import Kernels


@dataclass(frozen=True, slots=True)
class Operands:
    """Operands of one call."""

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> Self:
        """Pick them out of the arguments of a case; one that has a default may be absent."""
        return cls(**{field.name: call[field.name] for field in fields(cls) if field.name in call})


@dataclass(frozen=True, slots=True)
class ConvUpdate(Operands):
    """A decode step of the convolution.

    Attributes:
        x: Inputs, (tokens, channels).
        conv_state: The cache, (slots, channels, entries).
        weight: (channels, taps).
        bias: (channels,).
        activation: ``silu`` or nothing.
        conv_state_indices: Slots of each row, (rows,) or (rows, columns).
        num_accepted_tokens: Of the step before, (rows,); ``None`` without drafts.
        query_start_loc: Where each row begins, (rows + 1,); ``None`` where each is one token.
        block_idx_last_scheduled_token: Column that is written, (rows,); ``None`` for the first.
        initial_state_idx: Column that is read, likewise.
    """

    x: Tensor
    conv_state: Tensor
    weight: Tensor
    bias: Tensor | None
    activation: Any
    conv_state_indices: Tensor
    num_accepted_tokens: Tensor | None = None
    query_start_loc: Tensor | None = None
    block_idx_last_scheduled_token: Tensor | None = None
    initial_state_idx: Tensor | None = None


@dataclass(frozen=True, slots=True)
class ConvPrefill(Operands):
    """A prefill step of the convolution in ``all`` mode.

    Attributes:
        x: Inputs, (channels, tokens).
        weight: (channels, taps).
        bias: (channels,).
        conv_states: The cache, (slots, channels, entries).
        query_start_loc: Where each row begins, (rows + 1,).
        cache_indices: Slots of each row by block, (rows, blocks).
        has_initial_state: Whether a row goes on from what is cached, (rows,).
        activation: ``silu`` or nothing.
        initial_state_idx: Block from which it goes on, (rows,).
        num_computed_tokens: Before the step, (rows,).
        block_size_to_align: Tokens of a block.
    """

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    conv_states: Tensor
    query_start_loc: Tensor
    cache_indices: Tensor
    has_initial_state: Tensor
    activation: Any
    initial_state_idx: Tensor
    num_computed_tokens: Tensor
    block_size_to_align: int


@dataclass(frozen=True, slots=True)
class StateUpdate(Operands):
    """A decode step of the state.

    Attributes:
        state: The cache, (slots, heads, channels, entries).
        x: Inputs, (tokens, heads, channels).
        dt: Step sizes, likewise.
        a: Rate of decay, (heads, channels, entries).
        b: (tokens, groups, entries).
        c: Like ``b``.
        d: What goes straight to the output, (heads, channels).
        dt_bias: Added to the step sizes, (heads, channels).
        z: The output is multiplied by its SiLU, like ``x``.
        dt_softplus: Whether step sizes go through softplus.
        out: Takes the outputs, like ``x``.
        state_batch_indices: Slots that are read, (rows,) or (rows, columns).
        dst_state_batch_indices: Slots that are written; ``None`` for the same.
        num_accepted_tokens: Of the step before, (rows,); ``None`` without drafts.
        cu_seqlens: Where each row begins, (rows + 1,); ``None`` where each is one token.
    """

    state: Tensor
    x: Tensor
    dt: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor
    dt_bias: Tensor
    z: Tensor | None
    dt_softplus: bool
    out: Tensor
    state_batch_indices: Tensor
    dst_state_batch_indices: Tensor | None = None
    num_accepted_tokens: Tensor | None = None
    cu_seqlens: Tensor | None = None


@dataclass(frozen=True, slots=True)
class ChunkScan(Operands):
    """A prefill step of the state.

    Attributes:
        x: Inputs, (tokens, heads, channels).
        dt: Step sizes, (tokens, heads).
        a: Rate of decay, (heads,).
        b: (tokens, groups, entries).
        c: Like ``b``.
        out: Takes the outputs, like ``x``.
        d: What goes straight to the output, (heads,).
        z: The output is multiplied by its SiLU, like ``x``.
        dt_bias: Added to the step sizes, (heads,).
        initial_states: From which rows go on, (rows, heads, channels, entries).
        seq_idx: Row of each chunk, (chunks,).
        cu_chunk_seqlens: Where each chunk begins, (chunks + 1,).
        dt_limit: Least and largest step size.
    """

    x: Tensor
    dt: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    out: Tensor
    d: Tensor | None
    z: Tensor | None
    dt_bias: Tensor | None
    initial_states: Tensor | None
    seq_idx: Tensor
    cu_chunk_seqlens: Tensor
    dt_limit: tuple[float, float]


@dataclass(frozen=True, slots=True)
class OneHead(Operands):
    """A step of Mamba1.

    Attributes:
        x: Inputs, (tokens, channels).
        dt: Step sizes, likewise.
        a: Rate of decay, (channels, entries).
        b: (tokens, entries).
        c: Like ``b``.
        d: What goes straight to the output, (channels,).
        dt_bias: Added to the step sizes, (channels,).
        z: The output is multiplied by its SiLU, like ``x``.
    """

    x: Tensor
    dt: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor
    dt_bias: Tensor
    z: Tensor | None


@dataclass(frozen=True, slots=True)
class Caches(Operands):
    """Caches whose states mode ``align`` copies from block to block; groups of layers first.

    Attributes:
        conv: Windows of the convolution, (groups, slots, entries, channels), or channels first.
        temporal: States, (groups, slots, ...).
        table: Slots of each request by block, (groups, requests, blocks).
        dim_first: Whether channels come first in a window.
    """

    conv: Tensor
    temporal: Tensor
    table: Tensor
    dim_first: bool


@dataclass(frozen=True, slots=True)
class AlignAfter(Operands):
    """What has to be known of a step to copy after it.

    Attributes:
        columns: Block that each request's state is in, (requests,).
        computed: Tokens before the step, (requests,).
        scheduled: Tokens of the step, (requests,).
        drafts: Of these, drafts, (requests,).
        accepted: Tokens that the step gave, (requests,).
        block_size: Tokens of a block.
    """

    columns: Tensor
    computed: Tensor
    scheduled: Tensor
    drafts: Tensor
    accepted: Tensor
    block_size: int


_OF_STATE_UPDATE: Final = ("state", "x", "dt", "a", "b", "c", "d", "dt_bias")


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions that a mixer calls.

    Attributes:
        conv_fn: ``causal_conv1d_fn``.
        conv_update: ``causal_conv1d_update``.
        state_update: ``selective_state_update``, or what dispatches to it.
        scan: ``mamba_chunk_scan_combined_varlen``.
    """

    conv_fn: Callable[..., Any]
    conv_update: Callable[..., Any]
    state_update: Callable[..., Any]
    scan: Callable[..., Any]


def collect_kernels(functions: Functions) -> Kernels:
    """The functions as kernels, with the copies of ``align`` mode by their context."""

    def conv_prefill(**call: Any) -> Tensor:
        output: Tensor = functions.conv_fn(**call)
        return output.t()

    def conv_update(**call: Any) -> Tensor:
        output: Tensor = functions.conv_update(**call)
        return output

    def state_update(**call: Any) -> None:
        # vLLM has them without names, and calls three of them otherwise.
        first = [call.pop(name) for name in _OF_STATE_UPDATE]
        functions.state_update(*first, **call)

    def chunk_scan(a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, **call: Any) -> Tensor:
        output: Tensor = functions.scan(
            A=a, B=b, C=c, D=d, dt_softplus=True, return_intermediate_states=True, **call
        )
        return output

    return {
        "conv_prefill": conv_prefill,
        "conv_update": conv_update,
        "state_update": state_update,
        "chunk_scan": chunk_scan,
        "selective_scan": _selective_scan,
        "state_update_one_head": state_update,
        "align_before": _align_before,
        "align_after": _align_after,
    }


def _selective_scan(
    *, starts: Tensor, slots: Tensor, has_initial_state: Tensor, states: Tensor, **call: Any
) -> Tensor:
    """Tokens come last in vLLM's function, and it answers in the memory of its arguments."""
    from vllm.model_executor.layers.mamba.ops.mamba_ssm import selective_scan_fn

    layer = OneHead.of(call)
    output: Tensor = selective_scan_fn(
        layer.x.t(),
        states,
        layer.dt.t().clone(),
        layer.a,
        layer.b.t(),
        layer.c.t(),
        layer.d,
        None if layer.z is None else layer.z.t().clone(),
        layer.dt_bias,
        delta_softplus=True,
        query_start_loc=starts,
        cache_indices=slots,
        has_initial_state=has_initial_state,
    )
    return output.t()


def _align_before(*, targets: Tensor, sources: Tensor, later: Tensor, **call: Any) -> None:
    context = _context(Caches.of(call), 8)
    context.run_fused_precopy(len(targets), targets, sources, later, None)


def _align_after(**call: Any) -> Tensor:
    step = AlignAfter.of(call)
    context = _context(Caches.of(call), step.block_size)
    context.run_fused_postprocess(
        len(step.columns), step.accepted, step.columns, step.scheduled, step.computed, step.drafts
    )
    counts: Tensor = context.num_accepted_tokens_out[: len(step.columns)]
    return counts


def _context(caches: Caches, block_size: int) -> Any:
    """The runner's context over the caches of two groups of layers, bound to their first rows."""
    from vllm.model_executor.layers.mamba import mamba_utils as layouts
    from vllm.v1.kv_cache_interface import MambaSpec
    from vllm.v1.utils import CpuGpuBuffer
    from vllm.v1.worker.mamba_utils import MambaSpecDecodeGPUContext

    os.environ["VLLM_SSM_CONV_STATE_LAYOUT"] = "DS" if caches.dim_first else "SD"
    layouts.get_conv_state_layout.cache_clear()
    spec = MambaSpec(block_size=block_size, shapes=((1,),), dtypes=(torch.float32,))
    names = [f"group {number}" for number in range(len(caches.table))]
    groups = [SimpleNamespace(kv_cache_spec=spec, layer_names=[name]) for name in names]
    config: Any = SimpleNamespace(kv_cache_groups=groups)
    cpu = torch.device("cpu")

    def make_buffer(*size: int, dtype: torch.dtype) -> Any:
        return CpuGpuBuffer(*size, dtype=dtype, device=cpu, pin_memory=False)

    context = MambaSpecDecodeGPUContext.create(caches.table.shape[1], config, 2, cpu, make_buffer)
    layers = {
        name: SimpleNamespace(kv_cache=[caches.conv[number], caches.temporal[number]])
        for number, name in enumerate(names)
    }
    copies = (layouts.get_conv_copy_spec, layouts.get_temporal_copy_spec)
    context.initialize_from_forward_context(
        config, layers, copies, [rows[:1] for rows in caches.table]
    )
    return context
