"""``python -m ...check.interpreted SEED FILE NUMBER...``: cases run by the Triton kernels.

A process of its own, since Triton must be set to interpret before anything imports it. Writes the
results to the file, a list in the order of the numbers, as ``torch.save`` does.

The kernels are those of the installed vLLM, which on a CPU it overrides at the end of the modules
that define them; here these modules are loaded once more on a platform that says it is no CPU. The
interpreter needs help in three places: a grid that puts tensors among the arguments is worked out
before the launch, a mask made of integers is taken for truth, and of the configurations that a
kernel would be tuned over the first one serves.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

from hybridwatch_engine.cpu.triton_interpreter import interpret_triton
from hybridwatch_engine.patch import Patch


def triton_kernels() -> Any:
    """The Triton kernels in the form of the cases."""
    from vllm.platforms import current_platform

    from hybridwatch_engine_lab.studies.kernels.calls import Functions, collect_kernels

    importlib.import_module("vllm._custom_ops")
    on_gpu = Patch(type(current_platform), "is_cpu", lambda _: lambda platform: False)  # noqa: ARG005
    ops = "vllm.model_executor.layers.mamba.ops"
    convolution, states, combined = (
        importlib.import_module(f"{ops}.{name}")
        for name in ("causal_conv1d", "mamba_ssm", "ssd_combined")
    )
    on_gpu.install()
    for module in (convolution, states, combined):
        importlib.reload(module)
    on_gpu.remove()
    for name in ("ssd_bmm", "ssd_chunk_scan", "ssd_chunk_state", "ssd_state_passing"):
        _tune_nothing(importlib.import_module(f"{ops}.{name}"))
    Patch(convolution, "_causal_conv1d_fwd_kernel", _GridFirst).install()
    return collect_kernels(
        Functions(
            convolution.causal_conv1d_fn,
            convolution.causal_conv1d_update,
            states.selective_state_update,
            combined.mamba_chunk_scan_combined_varlen,
        )
    )


def _tune_nothing(module: Any) -> None:
    """Leave every tuned kernel of a module one configuration."""
    for value in vars(module).values():
        if hasattr(value, "configs"):
            value.configs = value.configs[:1]


class _GridFirst:
    """A kernel whose grid function sees, and may replace, the arguments as they were passed."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
        def launch(*args: Any, **named: Any) -> Any:
            names = self._kernel.arg_names
            meta = {**dict(zip(names, args, strict=False)), **named}
            programs = grid(meta)
            return self._kernel[programs](**meta)

        return launch


def main(seed: int, path: str, numbers: Sequence[int]) -> None:
    """Run the cases and write their results."""
    interpret_triton()
    with redirect_stdout(sys.stderr):
        import torch

        from hybridwatch_engine_lab.studies.kernels.cases import draw_case

        kernels = triton_kernels()
        torch.save([draw_case(number, seed).run(kernels) for number in numbers], path)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], [int(number) for number in sys.argv[3:]])
