"""A Triton kernel whose mask is a number's truth and a range's: prints what it copied of 1 to 8.

Run by an engine's Python, with the number of elements that count.
"""

import sys

from hybridwatch_engine.cpu.triton_interpreter import interpret_triton

interpret_triton()

import torch  # noqa: E402 (the interpreter is chosen before anything loads Triton)
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit  # type: ignore[untyped-decorator]
def copy(number, source, target, N: tl.constexpr):  # noqa: N803 (Triton's way)
    columns = tl.arange(0, 8)
    mask = (tl.load(number) > 0) & (columns < N)
    tl.store(target + columns, tl.load(source + columns, mask=mask), mask=mask)


target = torch.zeros(8, dtype=torch.int64)
copy[(1,)](torch.tensor([1]), torch.arange(1, 9), target, N=int(sys.argv[1]))
print(*target.tolist())  # noqa: T201 (its answer)
