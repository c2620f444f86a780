"""Cases by their numbers: the same number and seed give the same case in any process."""

from collections.abc import Callable, Sequence
from typing import Final

import torch

from hybridwatch_engine_lab.studies.kernels import align_cases, convolution_cases, state_cases
from hybridwatch_engine_lab.studies.kernels.case import KernelCase
from hybridwatch_engine_lab.studies.kernels.draw import Draw

_DRAWN: Final[Sequence[Callable[[Draw], KernelCase]]] = (
    convolution_cases.draw_update,
    state_cases.draw_update,
    convolution_cases.draw_prefill,
    state_cases.draw_scan,
    align_cases.draw_before,
    align_cases.draw_after,
    state_cases.draw_selective_scan,
    state_cases.draw_one_head_update,
)
_DTYPES: Final = (torch.float32, torch.bfloat16)


def draw_case(number: int, seed: int) -> KernelCase:
    """The case of this number; kernels and types take turns."""
    dtype = _DTYPES[number // len(_DRAWN) % len(_DTYPES)]
    return _DRAWN[number % len(_DRAWN)](Draw(seed * 1_000_003 + number, dtype))
