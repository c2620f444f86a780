"""Random launches of the kernels of model runner V2, by the names of their stand-ins.

Arguments have the kernels' names, without a final ``_ptr``. Tables of several groups are one
tensor, groups first; ``runner_launches`` makes addresses of it.
"""

from typing import Final

import torch

from hybridwatch_engine_lab.studies.kernels import runner_drafts, runner_sampling, runner_states
from hybridwatch_engine_lab.studies.kernels.draw import Draw, KernelCase
from hybridwatch_engine_lab.studies.kernels.runner_batch import LaunchMakers

DRAWN: Final[LaunchMakers] = {
    **runner_states.LAUNCHES,
    **runner_drafts.LAUNCHES,
    **runner_sampling.LAUNCHES,
}


def draw_launch(name: str, number: int, seed: int) -> KernelCase:
    """The launch of this number; the same in any process."""
    dtype = (torch.float32, torch.bfloat16)[number % 2]
    grid, call, written = DRAWN[name](Draw(seed * 1_000_003 + number, dtype))
    nothing = torch.zeros(0, dtype=torch.bool)
    return KernelCase(name, "", {**call, "grid": grid}, str(dtype), written, "", nothing)
