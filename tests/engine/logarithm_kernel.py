"""A Triton kernel that takes the logarithm of 1 + x: prints it for the x that are given.

Run by an engine's Python.
"""

import sys

from hybridwatch_engine.cpu.triton_interpreter import interpret_triton

interpret_triton()

import torch  # noqa: E402 (the interpreter is chosen before anything loads Triton)
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402


@triton.jit
def logarithm(values):
    places = values + tl.arange(0, 2)
    tl.store(places, libdevice.log1p(tl.load(places)))


numbers = torch.tensor([float(word) for word in sys.argv[1:]])
logarithm[(1,)](numbers)
print(*numbers.tolist())  # noqa: T201 (its answer)
