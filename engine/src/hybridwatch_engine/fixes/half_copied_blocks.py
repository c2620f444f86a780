"""A block that is copied for a hit within it is copied whole, for every layer that shares it."""

import ast
from collections.abc import Callable, Iterable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree

_UTILS = "v1/worker/utils.py"
_COPY = "copy_kv_cache_blocks_inplace"
_PLACE = {"device", "data_ptr"}
"""What two views of one block have in common, however many of its bytes each of them sees."""


def probe(tree: SourceTree) -> Finding:
    """Look for a copy that takes two views for one because they begin at one address."""
    copy = tree.function(_UTILS, _COPY)
    if copy is None:
        return Finding("not-applicable", f"{_UTILS} copies no blocks")
    for node in ast.walk(copy):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            names = {one.attr for one in ast.walk(node.value) if isinstance(one, ast.Attribute)}
            if "untyped_storage" not in names and "data_ptr" in names:
                place = f"{_UTILS}:{node.lineno}"
                if names <= _PLACE:
                    return Finding("lacking", f"{place} tells views apart by their address alone")
                return Finding("present", f"{place} tells views apart by more than their address")
    return Finding("not-applicable", f"{_UTILS}:{copy.lineno} copies whole allocations")


def _apply() -> PatchSet:
    """Give the views that see most of a block first: those are copied, and cover the others."""
    from vllm.v1.worker import gpu_model_runner
    from vllm.v1.worker.gpu import model_runner

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def copy(kv_caches: Iterable[Any], *args: Any) -> None:
            original(sorted(kv_caches, key=_bytes_of_block, reverse=True), *args)

        return copy

    return PatchSet(*(Patch(runner, _COPY, wrap) for runner in (gpu_model_runner, model_runner)))


def _bytes_of_block(view: Any) -> int:
    return int(view[0].numel() * view.element_size())


FIX = Fix(
    header("half-copied-blocks"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.kernels:copy_of_a_shared_block",
        with_fix={"v1": [4, 4], "v2": [4, 4]},
        without_fix={"v1": [2, 4], "v2": [2, 4]},
    ),
)
