"""``python -m hybridwatch_engine_lab.studies.kernels.runner_launches``: V2's kernels, both ways.

Random launches of the kernels of model runner V2 of the installed vLLM, by what stands in for them
(``cpu.runner_kernels``) and by Triton's interpreter; all that either writes is compared. The exit
status is 1 when something differs, or when a stand-in has served no launch.
"""

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

from hybridwatch_engine.cpu.runner_kernels import launch
from hybridwatch_engine.cpu.triton_interpreter import interpret_triton
from hybridwatch_engine.patch import Patch

if TYPE_CHECKING:
    from torch import Tensor

    from hybridwatch_engine_lab.studies.kernels.report import KernelReport

_RUNNER: Final = "vllm.v1.worker.gpu"
_CONSTANTS: Final = {"HAS_DRAFT_LOGITS", "SYNTHETIC_MODE", "USE_BLOCK_VERIFICATION", "WATERMARK"}
"""Constants of kernels that no launch here sets."""


def kernels() -> dict[str, Any]:
    """The kernels of this vLLM that something stands in for, by the name of that."""
    found: dict[str, Any] = {}
    runner = importlib.import_module(_RUNNER)
    names = [module.name for module in pkgutil.walk_packages(runner.__path__, f"{_RUNNER}.")]
    wanted = [name for name in names if ".spec_decode" in name or ".sample" in name]
    parts = (
        "block_table",
        "buffer_utils",
        "input_batch",
        "model_states.mamba_hybrid",
        "structured_outputs",
    )
    wanted += [f"{_RUNNER}.{part}" for part in parts]
    for name in (*wanted, "vllm.v1.worker.utils", "vllm.v1.worker.mamba_utils"):
        try:
            module = importlib.import_module(name)
        except ImportError:  # needs what is not there on a CPU
            continue
        for value in list(vars(module).values()):
            if type(value).__name__ == "InterpretedFunction":
                place = launch.find_stand_in(value)
                if place is not None:
                    found[place[1]] = value
    return found


def launching(kernel: Any) -> Callable[..., None]:
    """A function that launches a kernel with arguments as cases have them."""

    def call(*, grid: tuple[int, ...], **given: Any) -> None:
        if "conv" in given:
            given = {**given, **_states(given["conv"], given["temporal"], given)}
        arguments = {}
        for name in kernel.arg_names:
            value = given.get(name.removesuffix("_ptr"))
            if name not in launch.find_kernel(kernel).defaults or value is not None:
                arguments[name] = _argument(name, value, given)
        kernel[grid](**arguments)

    return call


def _argument(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """An argument as the kernel wants it: addresses of tables, and strides of tensors."""
    import torch

    if isinstance(value, torch.Tensor) and value.dim() == 3 and _is_of_addresses(name, given):
        return torch.tensor([table.data_ptr() for table in value], dtype=torch.int64)
    if value is not None:
        return value
    for axis, ending in enumerate(("_stride", "_stride_1")):
        base = name.removesuffix("_stride_0").removesuffix(ending)
        tensor = given.get(base)
        if base != name and isinstance(tensor, torch.Tensor):
            return tensor.stride(axis)
    return 0 if "stride" in name or "watermark_key" in name or name in _CONSTANTS else None


def _is_of_addresses(name: str, given: Mapping[str, Any]) -> bool:
    names = ("table_ptrs", "seg_addrs")
    return any(part in name for part in names) or bool(given.get("MULTI_GROUP"))


def _states(conv: "Tensor", temporal: "Tensor", given: Mapping[str, Any]) -> dict[str, Any]:
    """What says where the states of some groups lie: first all windows, then all others."""
    import torch

    groups, dim_first = len(conv), given["CONV_STATE_DIM_FIRST"]
    all_states = [*conv, *temporal]
    size = conv.element_size()
    width = conv.shape[3 if dim_first else 2]
    inner = [1 if dim_first else conv.stride(2)] * groups + [temporal[0, 0].numel()] * groups
    return {
        "state_base_addrs": torch.tensor([state.data_ptr() for state in all_states]),
        "state_block_strides": torch.tensor([state.stride(0) * size for state in all_states]),
        "state_elem_sizes": torch.full((2 * groups,), size, dtype=torch.int32),
        "state_inner_sizes": torch.tensor(inner),
        "state_conv_widths": torch.tensor([width] * groups + [0] * groups).int(),
        "state_group_indices": torch.arange(2 * groups).int() % groups,
        "state_dim_row_count": torch.full((2 * groups,), conv.shape[2], dtype=torch.int32),
        "state_dim_row_stride": torch.full((2 * groups,), conv.stride(2) * size),
        "block_table_stride_req": given["block_table_ptrs"].stride(1),
    }


def _shifted(name: str, by: int = 1) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """An argument is off by one."""
    return lambda call: {name: call[name] + by}


DEFECTS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    # Padded rows keep what they held.
    "gather_block_tables": lambda call: {"grid": (call["grid"][0], call["num_reqs"])},
    # Places behind the last token keep their slots.
    "slot_mappings": _shifted("max_num_tokens", -1),
    "apply_writes": _shifted("write_starts"),
    "zero_blocks": lambda call: {"seg_page_sizes": call["seg_page_sizes"] - 1},
    "prefill_inputs": _shifted("num_lookahead", -1),
    "positions_and_lengths": _shifted("max_num_reqs", -1),
    # The last tokens of a prompt count as answers.
    "combine_tokens": _shifted("prefill_len", -4),
    "sampled_and_rejected": _shifted("prefill_len", 3),
    "after_step": lambda call: {"num_rejected": 0 * call["num_rejected"]},
    "computed_after_step": lambda call: {"query_start_loc": 2 * call["query_start_loc"]},
    "expand_rows": lambda call: {"idx_mapping": call["idx_mapping"][::-1]},
    "scatter_accepted": _shifted("num_sampled", -1),
    "fill_accepted": _shifted("num_sampled"),
    "advance_blocks": lambda call: {"MAMBA_BLOCK_SIZE": 2 * call["MAMBA_BLOCK_SIZE"]},
    # Accepted drafts are forgotten.
    "copy_before_step": lambda call: {"token_bias": 0 * call["token_bias"]},
    "copy_after_step": _shifted("block_size"),
    "temperature": _shifted("vocab_size", -1),
    "sample": lambda call: {"seeds": call["seeds"] ^ 1, "logits": -call["logits"]},
    "mask_by_grammar": lambda call: {"bitmask": ~call["bitmask"]},
    "logprobs": _shifted("topk", -1),
    "ranks": lambda call: {"token_ids": call["token_ids"] // 2},
    "logit_statistics": _shifted("num_speculative_steps", -1),
    "verify": lambda call: {"draft_sampled": abs(call["draft_sampled"] // 2)},
    "resample": lambda call: {"rejected_step": 0 * call["rejected_step"]},
    "insert_resampled": lambda call: {"num_sampled": 0 * call["num_sampled"]},
    "flatten_sampled": lambda call: {"num_sampled": call["num_sampled"] // 2},
    "gather_drafts": _shifted("expanded_local_pos"),
    "scan_ngrams": lambda call: {"MAX_N": call["MAX_N"] - 1, "MIN_N": call["MIN_N"] - 1},
    "propose_ngrams": _shifted("L"),
    "first_draft_inputs": lambda call: {"num_rejected": 0 * call["num_rejected"]},
    "second_draft_inputs": lambda call: {"num_rejected": 0 * call["num_rejected"]},
    "next_draft_inputs": _shifted("num_speculative_steps"),
}
"""What may be planted: arguments that a stand-in takes wrongly, by its name."""


def planted(name: str) -> Patch:
    """A defect in one stand-in."""
    modules = (importlib.import_module(f"{launch.__package__}.{part}") for part in launch.MODULES)
    module = next(module for module in modules if hasattr(module, name))
    return Patch(
        module,
        name,
        lambda original: lambda **call: original(**{**call, **DEFECTS[name](call)}),
    )


def compare(names: Sequence[str], found: Mapping[str, Any], each: int, seed: int) -> "KernelReport":
    """Launch kernels both ways, so often each."""
    from triton.runtime.errors import InterpreterError

    from hybridwatch_engine_lab.studies.kernels.report import (
        CompareError,
        KernelReport,
        relative_error,
    )
    from hybridwatch_engine_lab.studies.kernels.runner_cases import draw_launch

    report, ours = KernelReport(seed, each * len(names)), launch.stand_ins()
    for kernel in names:
        launches = {kernel: launching(found[kernel])}
        for number in range(each):
            case = draw_launch(kernel, number, seed)
            try:
                interpreted = case.run(launches)
            except InterpreterError:  # noise of 0.27.1 (``tldevice.log1p``)
                continue
            before = launch.LAUNCHES[found[kernel].__name__, "stand-in"]
            ours.install()
            try:
                got = case.run(launches)
            finally:
                ours.remove()
            served = launch.LAUNCHES[found[kernel].__name__, "stand-in"] > before
            if served:
                errors = [
                    CompareError(
                        name, str(got[name].dtype), relative_error(got[name], interpreted[name])
                    )
                    for name in case.states
                ]
                report.add(number, case, "Triton", errors)
    return report


def main(arguments: Sequence[str]) -> int:
    """Compare all stand-ins, or those named."""
    parser = argparse.ArgumentParser(prog="python -m ...kernels.runner_launches")
    parser.add_argument("--each", type=int, default=30, help="launches of each kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--defects", action="store_true", help="plant each, and say which are found"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with redirect_stdout(sys.stderr):  # vLLM talks on standard output
        interpret_triton()
        launch.stand_ins()
        found = kernels()
        report = compare(sorted(found), found, options.each, options.seed)
        told: dict[str, Any] = report.to_json()
        told["unserved"] = sorted(set(found) - {worst["kernel"] for worst in told["worst"]})
        if options.defects:
            told["defects"] = {
                name: not _with_defect(name, found, options.each, options.seed).ok for name in found
            }
    text = json.dumps(told) if options.json else f"{report.to_text()}\nunserved {told['unserved']}"
    sys.stdout.write(text + "\n")
    return int(not report.ok or bool(told["unserved"]))


def _with_defect(name: str, found: Mapping[str, Any], each: int, seed: int) -> "KernelReport":
    defect = planted(name)
    defect.install()
    try:
        return compare([name], found, each, seed)
    finally:
        defect.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
