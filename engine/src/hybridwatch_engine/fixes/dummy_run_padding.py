"""A dummy run's rows must not say "prefilling"; beyond upstream (docs/findings.md, finding 1)."""

import ast
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, assigns, calls

_RUNNER = "v1/worker/gpu_model_runner.py"


_IN_DUMMY_RUN: ContextVar[bool] = ContextVar("a dummy run is in progress", default=False)


def probe(tree: SourceTree) -> Finding:
    """Look at the number of rows that a dummy run calls real."""
    build = tree.function(_RUNNER, "GPUModelRunner._build_attention_metadata")
    dummy = tree.function(_RUNNER, "GPUModelRunner._dummy_run")
    built = calls(dummy, "_build_attention_metadata") if dummy else []
    if build is None or not built or not assigns(build, "is_prefilling"):
        return Finding("not-applicable", f"{_RUNNER}: dummy runs build no is_prefilling")
    rows = next((word.value for word in built[0].keywords if word.arg == "num_reqs"), None)
    if isinstance(rows, ast.Name) and rows.id == "num_reqs_padded":
        return Finding("lacking", f"{_RUNNER}:{rows.lineno} calls every padded row a real one")
    return Finding("present", f"{_RUNNER}:{built[0].lineno} hands on the real rows of a dummy run")


def _apply() -> PatchSet:
    """Make the rows of a dummy run look finished while its metadata is built.

    Host memory only, and only in dummy runs; capture is left as it is.
    """
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def notice(original: Callable[..., Any]) -> Callable[..., Any]:
        def dummy_run(runner: Any, *args: Any, **kwargs: Any) -> Any:
            token = _IN_DUMMY_RUN.set(not kwargs.get("is_graph_capturing", False))
            try:
                return original(runner, *args, **kwargs)
            finally:
                _IN_DUMMY_RUN.reset(token)

        return dummy_run

    def past_their_prompts(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            if not _IN_DUMMY_RUN.get():
                return original(runner, *args, **kwargs)
            batch = runner.input_batch
            computed = batch.num_computed_tokens_cpu_tensor
            kept = computed.clone()
            computed.copy_(batch.num_prompt_tokens_cpu_tensor)
            try:
                return original(runner, *args, **kwargs)
            finally:
                computed.copy_(kept)

        return build

    return PatchSet(
        Patch(GPUModelRunner, "_dummy_run", notice),
        Patch(GPUModelRunner, "_build_attention_metadata", past_their_prompts),
    )


FIX = Fix(
    header("dummy-run-padding"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:flags_in_dummy_runs",
        with_fix={"replay": [False] * 4, "capture": [False, True, False, True]},
        without_fix={
            "replay": [False, True, False, True],
            "capture": [False, True, False, True],
        },
    ),
)
