"""A request's seed counts beside requests without one (vllm#51226); a CPU engine forgets it."""

import ast
import copy
from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_SAMPLER = "v1/sample/ops/topk_topp_sampler.py"
_SEEDS = 2**63 - 1


def probe(tree: SourceTree) -> Finding:
    """Look for a way out of the CPU's sampling that depends on how many rows have a seed."""
    function = tree.function(_SAMPLER, "TopKTopPSampler.forward_cpu")
    if function is None or not mentions(function, "generators"):
        return Finding("not-applicable", f"{_SAMPLER} has no sampling with seeds for CPUs")
    for branch in (node for node in ast.walk(function) if isinstance(node, ast.If)):
        counted = any(mentions(call, "generators") for call in calls(branch.test, "len"))
        if counted and isinstance(branch.body[-1], ast.Return):
            return Finding("lacking", f"{_SAMPLER}:{branch.lineno} leaves early, without seeds")
    return Finding("present", f"{_SAMPLER}:{function.lineno} uses whatever seeds there are")


def _apply() -> PatchSet:
    """Give each row without a seed a generator of its own, so that no row is without one."""
    from vllm.v1.sample.sampler import Sampler

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def sample(sampler: Any, logits: Any, sampling_metadata: Any, *args: Any) -> Any:
            if 0 < len(sampling_metadata.generators) < len(logits):
                sampling_metadata = _seeded(sampling_metadata, len(logits))
            return original(sampler, logits, sampling_metadata, *args)

        return sample

    return PatchSet(Patch(Sampler, "sample", wrap))


def _seeded(metadata: Any, rows: int) -> Any:
    import torch

    seeds = torch.randint(_SEEDS, (rows,)).tolist()
    others = {row: torch.Generator().manual_seed(seed) for row, seed in enumerate(seeds)}
    whole = copy.copy(metadata)
    whole.generators = {**others, **metadata.generators}
    return whole


FIX = Fix(
    header("seeds-beside-others"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.kernels:seed_beside_others",
        with_fix={"seeded_row_repeats": True, "other_row_repeats": False},
        without_fix={"seeded_row_repeats": False, "other_row_repeats": False},
    ),
)
