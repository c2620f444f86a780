"""What a check has found."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from hybridwatch_engine_lab.studies.kernels.case import KernelCase
from hybridwatch_engine_lab.studies.kernels.compare import LIMITS, CompareError

MOST_SHOWN: Final = 20
"""Failures in the text; the JSON has all."""


@dataclass(slots=True)
class Worst:
    """The largest error of one kernel in one type against one reference.

    Attributes:
        kernel: Which.
        dtype: Type of the tensor that is off.
        reference: ``plain loop`` or ``Triton``.
        cases: Cases compared.
        error: Largest relative error.
        number: Case that has it.
    """

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
    """Errors as they come in.

    Attributes:
        seed: Seed of the cases.
        cases: Cases drawn.
        worst: By kernel, type and reference.
        failures: What no limit covers.
    """

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
