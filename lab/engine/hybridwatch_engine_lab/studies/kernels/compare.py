"""How far results are from each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.case import KernelCase

LIMITS: Final = {"torch.float32": 1e-5, "torch.bfloat16": 1e-2}
"""Largest relative error of a tensor, by its type."""


@dataclass(frozen=True, slots=True)
class CompareError:
    """How far one tensor of a case is off.

    Attributes:
        name: Which tensor.
        dtype: Its type.
        relative: Largest difference over the largest value that the reference has; infinite where
            one has a number and the other none, or where something was written that the reference
            has left as it was.
    """

    name: str
    dtype: str
    relative: float

    @property
    def within(self) -> bool:
        """Whether the limit is kept."""
        return self.relative <= LIMITS.get(self.dtype, 0.0)  # counts have no error


def errors(
    case: KernelCase, found: Mapping[str, Tensor], reference: Mapping[str, Tensor]
) -> list[CompareError]:
    """The errors of every output and state of a case against the plain loop."""
    errors_found = []
    for name, value in found.items():
        relative = relative_error(value, reference[name])
        before = case.call.get(name)
        if name in case.states and before is not None and _touched(value, reference[name], before):
            relative = float("inf")
        errors_found.append(CompareError(name, str(value.dtype), relative))
    return errors_found


def written_errors(found: Mapping[str, Tensor], triton: Mapping[str, Tensor]) -> list[CompareError]:
    """The errors of a case against Triton, which writes into the null block what nobody reads."""
    errors_found = []
    for name, value in found.items():
        reference = torch.where(value.isnan(), torch.nan, triton[name].double())
        relative = relative_error(value, reference)
        errors_found.append(CompareError(name, str(value.dtype), relative))
    return errors_found


def relative_error(found: Tensor, reference: Tensor) -> float:
    """Largest difference over the largest value of the reference; 0 for nothing."""
    found, reference = found.double(), reference.double()
    if found.shape != reference.shape or not torch.equal(found.isnan(), reference.isnan()):
        return float("inf")
    if not found.numel():
        return 0.0
    off = (found - reference).nan_to_num(0).abs().max().item()
    return float(off / (reference.nan_to_num(0).abs().max().item() or 1.0))


def _touched(found: Tensor, reference: Tensor, before: Tensor) -> bool:
    """Whether a place has changed that the reference has left alone."""
    alone = (reference == before.double()) | reference.isnan()
    return not torch.equal(found[alone].nan_to_num(0), before[alone].nan_to_num(0))
