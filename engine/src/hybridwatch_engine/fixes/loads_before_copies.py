"""A Mamba state that a KV connector restores is there before it is copied.

Beyond upstream (vllm#43935 was closed unmerged).
"""

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls

_RUNNER = "v1/worker/gpu_model_runner.py"
_STEP = "GPUModelRunner.execute_model"
_CONNECTOR = "maybe_get_kv_connector_output"


def probe(tree: SourceTree) -> Finding:
    """Look for which comes first in a step: the copies, or the connector's loads."""
    step = tree.function(_RUNNER, _STEP)
    copies, loads = (_first_call(step, n) for n in ("preprocess_mamba", _CONNECTOR))
    if not copies or not loads:
        return Finding("not-applicable", f"{_RUNNER} copies no state in a step, or loads none")
    if copies < loads:
        return Finding("lacking", f"{_RUNNER}:{copies} copies states before it loads any")
    return Finding("present", f"{_RUNNER}:{loads} loads before it copies states")


def _first_call(step: ast.AST | None, name: str) -> int | None:
    return min((one.lineno for one in calls(step, name)), default=None) if step else None


def _apply() -> PatchSet:
    """Copy once more when the model is about to run: the connector has loaded by then."""
    from vllm.v1.worker import mamba_utils
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    made: list[Callable[[], None]] = []

    def remember(original: Callable[..., None]) -> Callable[..., None]:
        def copy(*args: Any) -> None:
            original(*args)
            made[:] = [partial(original, *args)]

        return copy

    def repeat(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(runner: Any, *args: Any, **named: Any) -> Any:
            while made:
                made.pop()()
            return original(runner, *args, **named)

        return forward

    return PatchSet(
        Patch(mamba_utils, "do_mamba_copy_block", remember),
        Patch(GPUModelRunner, "_model_forward", repeat),
    )


FIX = Fix(
    header("loads-before-copies"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:state_copied_in_a_step_that_loads",
        with_fix={"copied": ["before", "loaded"]},
        without_fix={"copied": ["before"]},
    ),
)
