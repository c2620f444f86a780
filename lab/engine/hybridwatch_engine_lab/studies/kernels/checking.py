"""The whole check: draw, run, compare."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from hybridwatch_engine.cpu.kernels import (
    align,
    chunk_scan,
    convolution,
    selective_scan,
    state_update,
)
from hybridwatch_engine.cpu.kernels.install import (
    speculation_kernels,
    speculative_state_update,
)
from hybridwatch_engine.patch import Patch, PatchSet
from torch import Tensor

from hybridwatch_engine_lab.studies.kernels import plain
from hybridwatch_engine_lab.studies.kernels.calls import Functions, collect_kernels
from hybridwatch_engine_lab.studies.kernels.cases import draw_case
from hybridwatch_engine_lab.studies.kernels.draw import KernelCase, Kernels
from hybridwatch_engine_lab.studies.kernels.report import KernelReport, errors, written_errors


def _history_one_early(original: Callable[..., Any]) -> Callable[..., Any]:
    """The history of a row with accepted drafts begins one entry too early."""
    return lambda first, length, slot, entry=0: original(first, length, slot, max(0, entry - 1))


def _accepted_one_less(original: Callable[..., Any]) -> Callable[..., Any]:
    """The state is read one accepted token too early."""

    def rows_of(sources: Any, targets: Any, accepted: Any, *rest: Any) -> Any:
        fewer = None if accepted is None else accepted - 1
        return original(sources, targets, fewer, *rest)

    return rows_of


def _last_state_everywhere(original: Callable[..., Any]) -> Callable[..., Any]:
    """Every slot of a row holds the state after its last token, as the compiled kernel has it."""

    def advance(states: Any, step: Any, rows: Any, null_block: int = 0) -> Any:
        output = original(states, step, rows, null_block)
        for row in rows:
            for slot in row.targets:
                if slot != null_block and row.targets[-1] != null_block:
                    states[slot] = states[row.targets[-1]]
        return output

    return advance


def _written_before_read(original: Callable[..., Any]) -> Callable[..., Any]:
    """Rows run one after the other, and a source is updated in its place first."""

    def advance(states: Any, step: Any, rows: Any, null_block: int = 0) -> Any:
        in_place = [replace(row, targets=[row.source] * row.length) for row in rows]
        original(states, step, in_place, null_block)
        return original(states, step, rows, null_block)

    return advance


def _block_end_one_late(original: Callable[..., Any]) -> Callable[..., Any]:
    """The state of a block end is taken one token late."""

    def prefill(x: Any, state: Any, layer: Any, *rows: Any) -> Any:
        *places, blocks, null_block = rows
        late = replace(blocks, computed=blocks.computed - 1)
        return original(x, state, layer, *places, late, null_block)

    return prefill


def _chunk_of_the_row_before(original: Callable[..., Any]) -> Callable[..., Any]:
    """Chunks go on from the chunk before, whosever it is."""
    return lambda added, decay, rows, initial: original(added, decay, [0] * len(rows), initial)


def _accepted_drafts_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    """The state of the first token moves, not that of the last accepted one."""
    return lambda state, request, source, target, _: original(state, request, source, target, 0)


def _state_kept_from_others(original: Callable[..., Any]) -> Callable[..., Any]:
    """A prompt begins with what is in its slot, whosever it was."""

    def scan(*operands: Any) -> None:
        *before, has_initial_state, states, null_block = operands[:14]
        original(*before, has_initial_state | True, states, null_block)

    return scan


DEFECTS: Final[Mapping[str, Callable[[], Patch]]] = {
    "history-one-early": lambda: Patch(convolution, "ConvolutionRow", _history_one_early),
    "block-end-one-late": lambda: Patch(convolution, "prefill", _block_end_one_late),
    "accepted-one-less": lambda: Patch(state_update, "rows_of", _accepted_one_less),
    "last-state-everywhere": lambda: Patch(state_update, "advance", _last_state_everywhere),
    "written-before-read": lambda: Patch(state_update, "advance", _written_before_read),
    "chunk-of-the-row-before": lambda: Patch(chunk_scan, "_pass_states", _chunk_of_the_row_before),
    "state-kept-from-others": lambda: Patch(selective_scan, "scan", _state_kept_from_others),
    "accepted-drafts-forgotten": lambda: Patch(
        align.CachedState, "move", _accepted_drafts_forgotten
    ),
}
"""What may be planted, by name."""


INTERPRETING_S: Final = 600
"""Longest time that the interpreter may take."""


def check(cases: int, seed: int, interpreted: int, defect: str | None = None) -> KernelReport:
    """Draw cases and compare them all with the plain loop, some with Triton.

    ``interpreted``: how many of them, at most, the Triton kernels run as well. ``defect``: planted
    for as long as it takes.
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
        command = [sys.executable, "-P", "-m", module, str(seed), str(path), *map(str, numbers)]
        subprocess.run(command, check=True, timeout=INTERPRETING_S, stdout=sys.stderr)
        results: list[dict[str, Tensor]] = torch.load(path)
        return results
