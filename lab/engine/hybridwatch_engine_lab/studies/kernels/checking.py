"""The whole check: draw, run, compare."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from hybridwatch_engine.cpu.kernels.install import (
    speculation_kernels,
    speculative_state_update,
)
from hybridwatch_engine.patch import PatchSet
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels import plain
from hybridwatch_engine_lab.studies.kernels.calls import Functions, collect_kernels
from hybridwatch_engine_lab.studies.kernels.case import KernelCase, Kernels
from hybridwatch_engine_lab.studies.kernels.compare import errors, written_errors
from hybridwatch_engine_lab.studies.kernels.drawing import draw_case
from hybridwatch_engine_lab.studies.kernels.planted import DEFECTS
from hybridwatch_engine_lab.studies.kernels.report import KernelReport

INTERPRETING_S: Final = 600
"""Longest time that the interpreter may take."""


def check(cases: int, seed: int, interpreted: int, defect: str | None = None) -> KernelReport:
    """Draw cases and compare them all with the plain loop, some with Triton.

    Args:
        cases: How many.
        seed: Says which.
        interpreted: How many of them, at most, the Triton kernels run as well.
        defect: Planted for as long as it takes.

    Raises:
        KeyError: No such defect.
        subprocess.CalledProcessError: The interpreter failed.
    """
    report = KernelReport(seed, cases)
    planted = PatchSet(*([] if defect is None else [DEFECTS[defect]()]))
    planted.install()
    try:
        _compare(report, interpreted)
    finally:
        planted.remove()
    return report


def _compare(report: KernelReport, interpreted: int) -> None:
    ours, loops = installed_kernels(), _loops()
    drawn = [draw_case(number, report.seed) for number in range(report.cases)]
    for number, case in enumerate(drawn):
        found = errors(case, case.run(ours), case.run(loops, precise=True))
        report.add(number, case, "plain loop", found)
    numbers = _sample(drawn, interpreted)
    if numbers:
        for number, result in zip(numbers, _interpreted(report.seed, numbers), strict=True):
            case = drawn[number]
            report.add(number, case, "Triton", written_errors(case.run(ours), result))


def installed_kernels() -> Kernels:
    """What a mixer of this process calls, with the kernels put in."""
    from vllm.model_executor.layers.mamba import mamba_mixer2
    from vllm.model_executor.layers.mamba.ops.ssu_dispatch import CPUSSUBackend

    speculation_kernels().install()
    speculative_state_update().install()
    unconfigured: Any = None
    return collect_kernels(
        Functions(
            mamba_mixer2.causal_conv1d_fn,
            mamba_mixer2.causal_conv1d_update,
            CPUSSUBackend(unconfigured),
            mamba_mixer2.mamba_chunk_scan_combined_varlen,
        )
    )


def _loops() -> Kernels:
    return {
        "conv_prefill": plain.conv_prefill,
        "conv_update": plain.conv_update,
        "state_update": plain.state_update,
        "chunk_scan": plain.chunk_scan,
        "selective_scan": plain.selective_scan,
        "state_update_one_head": plain.state_update_one_head,
        "align_before": plain.align_before,
        "align_after": plain.align_after,
    }


def _sample(cases: Sequence[KernelCase], most: int) -> list[int]:
    """Numbers of cases for Triton, as many of each kernel."""
    kernels = sorted({case.kernel for case in cases})
    numbers: list[int] = []
    for kernel in kernels:
        fit = [n for n, case in enumerate(cases) if case.kernel == kernel and case.interpretable]
        numbers += fit[: most // len(kernels)]
    return numbers


def _interpreted(seed: int, numbers: Sequence[int]) -> list[dict[str, Tensor]]:
    """Results of the Triton kernels."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results"
        module = "hybridwatch_engine_lab.studies.kernels.interpreted"
        command = [sys.executable, "-m", module, str(seed), str(path), *map(str, numbers)]
        subprocess.run(command, check=True, timeout=INTERPRETING_S, stdout=sys.stderr)
        results: list[dict[str, Tensor]] = torch.load(path)
        return results
