"""Keeps convolution weights unpacked where the packer does not know their type.

For the kernels of gated delta nets vLLM repacks every convolution weight as it loads a model: with
AMX up to 0.28.0, on any CPU with AVX512-BF16 from 0.29.0 to 0.31.0. The packer knows bfloat16 only,
so a model in another type ends its engine there (``"causal_conv1d_fwd_kernel_impl" not implemented
for 'Float'``). Mamba layers never read the packed form. 0.32.0 looks at the type itself.
"""

from collections.abc import Callable
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
