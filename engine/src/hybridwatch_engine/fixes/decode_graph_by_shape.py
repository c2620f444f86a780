"""Model runner V2 replays no decode graph over a prompt (vllm#51865)."""

from collections.abc import Callable
from contextvars import ContextVar
from inspect import signature
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls

_RUNNER = "v1/worker/gpu/model_runner.py"
_BY_SHAPE = "get_uniform_token_count"
_BY_PROMPTS = "get_uniform_decode_token_count"

_STEP: ContextVar[tuple[Any, Any] | None] = ContextVar(
    "model runner and scheduler's output of the step in progress", default=None
)


def probe(tree: SourceTree) -> Finding:
    """Look at how a batch of decodes is recognized: by its shape alone, or by having no prompt."""
    runner = tree.module(_RUNNER)
    if runner is None:
        return Finding("not-applicable", f"no {_RUNNER}")
    if calls(runner, _BY_PROMPTS):
        return Finding("present", f"{_RUNNER} asks {_BY_PROMPTS}")
    if calls(runner, _BY_SHAPE):
        return Finding("lacking", f"{_RUNNER} asks {_BY_SHAPE}")
    return Finding("not-applicable", f"{_RUNNER} chooses graphs in another way")


def _apply() -> PatchSet:
    """Call a batch with a row in its prompt not uniform; looks at NumPy arrays on the host."""
    from vllm.v1.worker.gpu import model_runner

    def remember(original: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
            token = _STEP.set(None if kwargs.get("dummy_run") else (runner, output))
            try:
                return original(runner, output, *args, **kwargs)
            finally:
                _STEP.reset(token)

        return execute_model

    def unless_prompts(original: Callable[..., Any]) -> Callable[..., Any]:
        def uniform_token_count(*shape: Any) -> int | None:
            step = _STEP.get()
            found: int | None = original(*shape)
            return None if step is not None and _holds_prompt(*step) else found

        return uniform_token_count

    return PatchSet(
        Patch(model_runner.GPUModelRunner, "execute_model", remember),
        Patch(model_runner, _BY_SHAPE, unless_prompts),
    )


def _holds_prompt(runner: Any, output: Any) -> bool:
    states = runner.req_states
    rows = [states.req_id_to_index[name] for name in output.num_scheduled_tokens]
    return bool((states.num_computed_prefill_tokens[rows] < states.prefill_len.np[rows]).any())


def _revert() -> PatchSet:
    """Go by the shape alone; releases name the last argument differently."""
    from vllm.v1.worker.gpu import model_runner

    def by_shape(original: Callable[..., Any]) -> Callable[..., Any]:
        *_, last = signature(original).parameters
        # Up to 0.30.0 whether there is a prompt, then whether a graph may be replayed.
        decodes = {last: last != "has_prefill"}

        def uniform_token_count(*shape: Any, **_: Any) -> Any:
            return original(*shape[:3], **decodes)

        return uniform_token_count

    return PatchSet(Patch(model_runner, _BY_PROMPTS, by_shape))


FIX = Fix(
    header("decode-graph-by-shape"),
    probe,
    apply=_apply,
    revert=_revert,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner_v2:uniform_token_counts",
        with_fix={"first_token": None, "decode": 1},
        without_fix={"first_token": 1, "decode": 1},
    ),
)
