"""Padded rows of a FULL-graph batch must not say "prefilling" (vllm#41873)."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, assigns, stores_into

_RUNNER: ContextVar[Any] = ContextVar("runner of the metadata build in progress")


def probe(tree: SourceTree) -> Finding:
    """Look for a store that clears the tail of ``is_prefilling``."""
    path = "v1/worker/gpu_model_runner.py"
    build = tree.function(path, "GPUModelRunner._build_attention_metadata")
    if build is None or not assigns(build, "is_prefilling"):
        return Finding("not-applicable", f"{path} builds no is_prefilling")
    stores = stores_into(build, "is_prefilling")
    if stores:
        return Finding("present", f"{path}:{stores[0].lineno} clears is_prefilling of padded rows")
    return Finding("lacking", f"{path}:{build.lineno} never clears is_prefilling")


def _apply() -> PatchSet:
    """Make padded rows look finished while the metadata is built.

    ``is_prefilling`` is computed from two host tensors; raising the computed count of the padded
    rows to their prompt length makes every comparison False. Host memory only: no synchronisation.
    """
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, num_tokens: int, num_reqs: int, *args: Any, **kwargs: Any) -> Any:
            rows = slice(num_reqs, kwargs.get("num_reqs_padded") or num_reqs)
            computed = runner.input_batch.num_computed_tokens_cpu_tensor[rows]
            kept = computed.clone()
            computed.copy_(runner.input_batch.num_prompt_tokens_cpu_tensor[rows])
            try:
                return original(runner, num_tokens, num_reqs, *args, **kwargs)
            finally:
                computed.copy_(kept)

        return build

    return PatchSet(Patch(GPUModelRunner, "_build_attention_metadata", wrap))


def _revert() -> PatchSet:
    """Give padded rows their stale flags back.

    The flags are cleared inside a long function, just before they become a field of
    ``CommonAttentionMetadata``. So the name of that class in the runner's module is replaced by a
    factory that computes the field as releases before 0.22.0 did.
    """
    from vllm.v1.worker import gpu_model_runner

    def remember_runner(original: Callable[..., Any]) -> Callable[..., Any]:
        def build(runner: Any, *args: Any, **kwargs: Any) -> Any:
            token = _RUNNER.set(runner)
            try:
                return original(runner, *args, **kwargs)
            finally:
                _RUNNER.reset(token)

        return build

    def with_stale_flags(original: Callable[..., Any]) -> Callable[..., Any]:
        def construct(**fields: Any) -> Any:
            rows = slice(0, fields["num_reqs"])
            batch = _RUNNER.get().input_batch
            fields["is_prefilling"] = (
                batch.num_computed_tokens_cpu_tensor[rows]
                < batch.num_prompt_tokens_cpu_tensor[rows]
            )
            return original(**fields)

        return construct

    return PatchSet(
        Patch(gpu_model_runner.GPUModelRunner, "_build_attention_metadata", remember_runner),
        Patch(gpu_model_runner, "CommonAttentionMetadata", with_stale_flags),
    )


FIX = Fix(
    header("padded-rows-prefilling"),
    probe,
    apply=_apply,
    revert=_revert,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:flags_of_padded_rows",
        with_fix={"flags": [False, True, False, False, False]},
        without_fix={"flags": [False, True, False, True, True]},
    ),
)
