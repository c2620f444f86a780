"""Model runner V2 on a CPU: Triton's interpreter runs the kernels that V2 has no compiled form of.

V2 keeps its books (block tables, slot mappings, positions, drafts) by Triton kernels, and Triton
has no compiler for CPUs. The interpreter runs the same kernels one program after the other over
host memory, slowly but to the same end; most launches ``runner_kernels`` takes over. Attention and
Mamba layers are not touched: on a CPU they do not call Triton kernels.

vLLM asks once whether there is a Triton, while ``vllm.triton_utils`` is imported: a back end called
``cpu``, and a distribution called ``vllm`` that says "cpu" in its version. Both are shown to it
here. Everything that asks for Triton is answered yes from then on, also model runner V1, which then
leaves out its own CPU kernels; so this is for engines that run V2 and for no other.
"""

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from hybridwatch_engine.patch import Patch
from hybridwatch_engine.source import engine_distribution, installed_tree

_RUNNER: Final = "v1/worker/cpu/model_runner.py"


def interpret_triton() -> None:
    """Let this process, and those it starts, interpret Triton kernels.

    Raises:
        RuntimeError: vLLM or Triton is imported already, or this release cannot run V2 on a CPU.
    """
    early = [name for name in ("vllm", "triton") if name in sys.modules]
    if early:
        raise RuntimeError(f"{' and '.join(early)} imported before Triton's interpreter was chosen")
    if installed_tree().module(_RUNNER) is None:
        release = engine_distribution().version
        raise RuntimeError(f"vLLM {release} has no model runner V2 for CPUs (no {_RUNNER})")
    os.environ["TRITON_INTERPRET"] = "1"  # read by each @triton.jit, the library's own included
    _add_backend()
    named = Patch(importlib.metadata, "version", _known_as_vllm)
    named.install()
    try:
        found = importlib.import_module("vllm.triton_utils").HAS_TRITON
    finally:
        named.remove()
    if not found:
        raise RuntimeError("vLLM does not take Triton's interpreter for a Triton")
    _take_integers_for_masks()
    _compute_log1p()


def _add_backend() -> None:
    """List a back end called ``cpu`` that says it can be used."""
    from triton.backends import Backend, backends
    from triton.backends.compiler import BaseBackend, GPUTarget
    from triton.backends.driver import DriverBase

    class InterpreterDriver(DriverBase):  # type: ignore[misc]
        """A driver of no device; the interpreter asks it for nothing but its target."""

        @classmethod
        def is_active(cls) -> bool:
            return True

        def get_current_target(self) -> Any:
            return GPUTarget("cpu", 0, 1)

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cpu")

        def map_python_to_cpp_type(self, ty: str) -> str:
            raise NotImplementedError("nothing is compiled")

        def get_benchmarker(self) -> Callable[..., Any]:
            raise NotImplementedError("nothing is tuned")

    backends["cpu"] = Backend(compiler=BaseBackend, driver=InterpreterDriver)


def _take_integers_for_masks() -> None:
    """Let a mask be of integers, as a compiler does.

    ``(number > 0) & (numbers < n)`` is of integers to the interpreter of Triton 3.9, which then
    refuses it. Mamba's kernels have such masks, and so do the prefill checkpoints that vLLM 0.32.0
    keeps for prefix caching (``ops/ssd_checkpoint.py``).
    """
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def truth(mask: Any) -> Any:
        return TensorHandle(mask.data.astype(bool), mask.dtype)

    def load(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda builder, ptrs, mask, *rest: original(builder, ptrs, truth(mask), *rest)

    def store(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda builder, ptrs, value, mask, *rest: original(
            builder, ptrs, value, truth(mask), *rest
        )

    Patch(InterpreterBuilder, "create_masked_load", load).install()
    Patch(InterpreterBuilder, "create_masked_store", store).install()


def _compute_log1p() -> None:
    """Give the interpreter the logarithm of 1 + x, of which Triton has the name alone on a CPU.

    The sampler of releases up to 0.30.0 takes it from there when it draws (``sample/gumbel.py``).
    """
    import numpy as np
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime.interpreter import TensorHandle

    def log1p(_: Callable[..., Any]) -> Callable[..., Any]:
        def compute(x: Any) -> Any:
            return tl.tensor(TensorHandle(np.log1p(x.handle.data), x.handle.dtype), x.type)

        return compute

    Patch(libdevice, "log1p", log1p).install()


def _known_as_vllm(original: Callable[[str], str]) -> Callable[[str], str]:
    """Give the engine's distribution a version under the name ``vllm``, also under another name."""

    def version(distribution_name: str) -> str:
        found = engine_distribution()
        if distribution_name == "vllm" and found.metadata["Name"] != "vllm":
            return f"{found.version}+cpu"
        return original(distribution_name)

    return version
