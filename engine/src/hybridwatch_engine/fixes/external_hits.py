"""A prompt that a KV connector has something of is scheduled in mode ``align`` (vllm#42554)."""

import ast
from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_SCHEDULER = "v1/core/sched/scheduler.py"
_SPLIT = "_mamba_block_aligned_split"
_EXTERNAL = "num_external_computed_tokens"


def probe(tree: SourceTree) -> Finding:
    """Look for an assertion that no connector has anything."""
    split = tree.function(_SCHEDULER, f"Scheduler.{_SPLIT}")
    if split is None or not mentions(split, _EXTERNAL):
        return Finding("not-applicable", f"{_SCHEDULER} asks no connector before it cuts a prompt")
    asserts = [
        node
        for node in ast.walk(split)
        if isinstance(node, ast.Assert) and mentions(node, _EXTERNAL)
    ]
    if asserts:
        return Finding("lacking", f"{_SCHEDULER}:{asserts[0].lineno} asserts that there is nothing")
    return Finding("present", f"{_SCHEDULER}:{split.lineno} counts what a connector has")


def _revert() -> PatchSet:
    """Assert once more that no connector has anything."""
    from vllm.v1.core.sched.scheduler import Scheduler

    def wrap(original: Callable[..., int]) -> Callable[..., int]:
        def split(scheduler: Any, request: Any, new: int, local: int = 0, external: int = 0) -> int:
            if external:
                raise AssertionError("External KV connector is not verified yet")
            return original(scheduler, request, new, local, external)

        return split

    return PatchSet(Patch(Scheduler, _SPLIT, wrap))


FIX = Fix(
    header("external-hits"),
    probe,
    revert=_revert,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.prefix_cache:chunk_behind_a_connector",
        with_fix={"chunk": 16},
        without_fix={"chunk": "AssertionError"},
    ),
)
