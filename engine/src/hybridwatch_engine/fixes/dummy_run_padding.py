"""A dummy run's rows must not say "prefilling"; beyond upstream (docs/findings.md, finding 1)."""

import ast
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridwatch_engine.fixes.fix import NOWHERE, Finding, Fix, Header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, assigns, calls

_RUNNER = "v1/worker/gpu_model_runner.py"

HEADER = Header(
    id="dummy-run-padding",
    target=f"{_RUNNER} GPUModelRunner._dummy_run",
    why="A dummy run hands the padded number of rows on as the real one, so nothing clears the "
    "flags of its rows. A row whose last request ended with its prompt says `prefilling`; with a "
    "length of one token the Mamba builder then calls the dummy batch a prefill, leaves the "
    "graph's slots as they were, and the replay writes into the state of the last real batch.",
    how="While a dummy run's metadata is built its rows count as past their prompts.",
    upstream="vllm: no report known; after vllm#41873",
    present_from=NOWHERE,
    switch="live",
    scenario="reported/dummy-run-padding",
    remove_when="upstream has it in every supported release",
)

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


FIX = Fix(HEADER, probe, apply=_apply)
