"""How far results are from each other, and what a check has found."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels.draw import KernelCase

LIMITS: Final = {"torch.float32": 1e-5, "torch.bfloat16": 1e-2}
"""Largest relative error of a tensor, by its type."""


@dataclass(frozen=True, slots=True)
class CompareError:
    """How far one tensor of a case is off.

    Attributes:
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
    """The errors of a case against Triton, which writes unread values into the null block."""
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


MOST_SHOWN: Final = 20
"""Failures in the text; the JSON has all."""


@dataclass(slots=True)
class Worst:
    """The largest error of one kernel in one type against one reference."""

    kernel: str
    dtype: str
    reference: str
    cases: int = 0
    error: float = 0.0
    number: int = -1


@dataclass(frozen=True, slots=True)
class KernelFailure:
    """A tensor of a case that is further off than the limit."""

    number: int
    kernel: str
    form: str
    tensor: str
    dtype: str
    reference: str
    error: float


@dataclass(slots=True)
class KernelReport:
    """Errors as they come in."""

    seed: int
    cases: int
    worst: dict[tuple[str, str, str], Worst] = field(default_factory=dict)
    failures: list[KernelFailure] = field(default_factory=list)

    def add(
        self, number: int, case: KernelCase, reference: str, errors: Iterable[CompareError]
    ) -> None:
        """Take in the errors of one case against one reference."""
        by_type: dict[str, list[CompareError]] = {}
        for error in errors:
            by_type.setdefault(error.dtype.removeprefix("torch."), []).append(error)
        for dtype, found in by_type.items():
            key = (case.kernel, dtype, reference)
            worst = self.worst.setdefault(key, Worst(*key))
            worst.cases += 1
            largest = max(error.relative for error in found)
            if largest > worst.error or worst.number < 0:
                worst.error, worst.number = largest, number
            self.failures += [
                KernelFailure(number, case.kernel, case.form, e.name, dtype, reference, e.relative)
                for e in found
                if not e.within
            ]

    @property
    def ok(self) -> bool:
        """Whether every limit is kept."""
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "seed": self.seed,
            "cases": self.cases,
            "limits": {dtype.removeprefix("torch."): limit for dtype, limit in LIMITS.items()},
            "ok": self.ok,
            "worst": [asdict(worst) for _, worst in sorted(self.worst.items())],
            "failures": [asdict(failure) for failure in self.failures],
        }

    def to_text(self) -> str:
        """As a table, with the failures below."""
        lines = [
            f"{self.cases} cases, seed {self.seed}; relative error: largest difference in a tensor",
            "over the largest value that the reference has in it",
            f"{'kernel':<13} {'type':<9} {'against':<11} {'cases':>5} {'worst':>8}  case",
        ]
        for _, worst in sorted(self.worst.items()):
            what = f"{worst.kernel:<13} {worst.dtype:<9} {worst.reference:<11}"
            lines.append(f"{what} {worst.cases:>5} {worst.error:>8.1e} {worst.number:>5}")
        lines += [
            f"FAILED case {f.number}: {f.kernel} ({f.form}), {f.tensor} {f.dtype} against the"
            f" {f.reference}: {f.error:.1e}"
            for f in self.failures[:MOST_SHOWN]
        ]
        if len(self.failures) > MOST_SHOWN:
            lines.append(f"and {len(self.failures) - MOST_SHOWN} more")
        return "\n".join(lines)
