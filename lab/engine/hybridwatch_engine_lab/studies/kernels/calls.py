"""Calls of vLLM's functions in the form of the cases, whoever has put what behind them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import Kernels
from hybridwatch_engine_lab.studies.kernels.operands import AlignAfter, Caches, OneHead

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
    *, starts: Tensor, slots: Tensor, is_known: Tensor, states: Tensor, **call: Any
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
        has_initial_state=is_known,
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
