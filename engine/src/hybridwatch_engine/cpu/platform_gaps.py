"""What vLLM's CPU platform lacks besides kernels.

Two collectives, weights left unpacked, states in half precision, and ``top_k`` and ``top_p`` where
Triton is interpreted.

Mixture-of-experts layers of a data-parallel engine send every token to every rank and back. vLLM's
communicator for CPUs leaves the two operations out (``distributed/device_communicators``); gloo has
what they are made of.

Ranks of tensor parallelism and stages of a pipeline exchange tensors through shared memory, where
each spins until the others are there. With as many processes as processors, or more, one spins for
a whole time slice while the one that it waits for has no processor. Over gloo it sleeps.

For the kernels of gated delta nets vLLM repacks every convolution weight as it loads a model: with
AMX up to 0.28.0, on any CPU with AVX512-BF16 from 0.29.0 to 0.31.0. The packer knows bfloat16 only,
so a model in another type ends its engine there (``"causal_conv1d_fwd_kernel_impl" not implemented
for 'Float'``). Mamba layers never read the packed form. 0.32.0 looks at the type itself.

On a CPU with AVX512-BF16 vLLM resets the type of recurrent states to float32 in every model but
those of gated delta nets, for whose kernels it does so. Mamba layers have none of these kernels.

Where it finds Triton vLLM draws from the likeliest tokens by a kernel, which the interpreter cannot
run (``'int' object has no attribute 'to'``), and else by operations of PyTorch.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet


def _bfloat16_only(original: Callable[..., None]) -> Callable[..., None]:
    import torch

    def dispatch_cpu_unquantized_gemm(layer: Any, *args: Any, **named: Any) -> None:
        weight = layer.weight
        packable = weight.is_meta or weight.ndim == 2 or weight.dtype == torch.bfloat16
        if packable:
            original(layer, *args, **named)

    return dispatch_cpu_unquantized_gemm


@cache
def unpacked_conv_weights() -> PatchSet:
    """The patch, made once per process; nothing in a release that has no such function."""
    from vllm.model_executor.layers import utils

    name = "dispatch_cpu_unquantized_gemm"
    return PatchSet(*([Patch(utils, name, _bfloat16_only)] if hasattr(utils, name) else []))


@cache
def half_states() -> PatchSet:
    """The patch, made once per process; nothing in a release that has no such function."""
    from vllm.platforms import cpu

    def keeping(original: Callable[[Any], str]) -> Callable[[Any], str]:
        def _cpu_mamba_backend(config: Any) -> str:
            chosen = config.cache_config.mamba_ssm_cache_dtype
            return "gdn" if chosen in {"float16", "bfloat16"} else original(config)

        return _cpu_mamba_backend

    name = "_cpu_mamba_backend"
    return PatchSet(*([Patch(cpu, name, keeping)] if hasattr(cpu, name) else []))


@cache
def choice_without_triton() -> PatchSet:
    """The patch, made once per process; nothing in a release that has no such kernel."""
    from vllm.v1.sample.ops import topk_topp_sampler as ops

    def apply_top_k_top_p(logits: Any, k: Any, p: Any) -> Any:
        return ops.apply_top_k_top_p_pytorch(logits, k, p)

    name = "apply_top_k_top_p_triton"
    found = hasattr(ops, name) and hasattr(ops, "apply_top_k_top_p_pytorch")
    return PatchSet(*([Patch(ops, name, lambda _: apply_top_k_top_p)] if found else []))


def _gather(communicator: Any, rows: Any, sizes: Sequence[int] | None) -> Any:
    """All ranks' rows, in order of rank; every rank sends as many as the largest has."""
    import torch

    counts = list(sizes) if sizes is not None else [rows.shape[0]] * communicator.world_size
    padded = rows.new_zeros((max(counts), *rows.shape[1:]))
    padded[: rows.shape[0]] = rows
    received = [torch.empty_like(padded) for _ in counts]
    torch.distributed.all_gather(received, padded, group=communicator.cpu_group)
    return torch.cat([part[:count] for part, count in zip(received, counts, strict=True)])


def _all_gatherv(_: Callable[..., Any]) -> Callable[..., Any]:
    def all_gatherv(
        communicator: Any, input_: Any, dim: int = 0, sizes: list[int] | None = None
    ) -> Any:
        if dim != 0:
            raise NotImplementedError(f"expected dim 0, got {dim}")
        if isinstance(input_, list):
            return [_gather(communicator, rows, sizes) for rows in input_]
        return _gather(communicator, input_, sizes)

    return all_gatherv


def _reduce_scatterv(_: Callable[..., Any]) -> Callable[..., Any]:
    def reduce_scatterv(
        communicator: Any, input_: Any, dim: int = -1, sizes: list[int] | None = None
    ) -> Any:
        import torch

        rows = input_.movedim(dim, 0).contiguous()
        counts = sizes or [rows.shape[0] // communicator.world_size] * communicator.world_size
        # gloo scatters no sums of unequal parts, so each rank takes its part of the whole sum.
        torch.distributed.all_reduce(rows, group=communicator.cpu_group)
        mine = rows.split(list(counts))[communicator.rank_in_group]
        return mine.movedim(0, dim).contiguous()

    return reduce_scatterv


@cache
def sleeping_ranks() -> PatchSet:
    """The patch, made once per process; nothing in a release that does not ask."""
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    name = "_all_group_ranks_share_shm_group_name"
    found = hasattr(CpuCommunicator, name)
    return PatchSet(*([Patch(CpuCommunicator, name, lambda _: lambda _: False)] if found else []))


@cache
def collectives() -> PatchSet:
    """The operations, made once per process."""
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    return PatchSet(
        Patch(CpuCommunicator, "all_gatherv", _all_gatherv),
        Patch(CpuCommunicator, "reduce_scatterv", _reduce_scatterv),
    )
