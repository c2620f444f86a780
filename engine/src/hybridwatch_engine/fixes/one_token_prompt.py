"""A first token never rides in a FULL decode graph; beyond upstream (vllm#57720 is open)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_RUNNER = "v1/worker/gpu_model_runner.py"
_DISPATCH = "_determine_batch_execution_and_padding"


def probe(tree: SourceTree) -> Finding:
    """Look for a dispatch that knows more of a batch than its shape."""
    dispatch = tree.function(_RUNNER, f"GPUModelRunner.{_DISPATCH}")
    uniform = tree.function(_RUNNER, "GPUModelRunner._is_uniform_decode")
    builder = tree.function(
        "v1/attention/backends/mamba_attn.py",
        "BaseMambaAttentionMetadataBuilder._compute_common_metadata",
    )
    if dispatch is None or uniform is None or builder is None:
        return Finding("not-applicable", f"{_RUNNER} dispatches in another way")
    if not mentions(builder, "treat_short_extends_as_decodes"):
        return Finding("not-applicable", "the Mamba builder splits batches by length alone")
    words = ("num_computed_tokens_cpu", "is_prefilling", "has_prefill")
    for function in (dispatch, uniform):
        known = [word for word in words if mentions(function, word)]
        if known:
            return Finding("present", f"{_RUNNER}:{function.lineno} looks at {known[0]}")
    return Finding("lacking", f"{_RUNNER}:{uniform.lineno} looks at the shape of a batch alone")


def _apply() -> PatchSet:
    """Call a batch with a row of a prompt not uniform; one look at NumPy arrays on the host."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def determine(runner: Any, **kwargs: Any) -> Any:
            longest = kwargs["max_num_scheduled_tokens"]
            is_open = "force_uniform_decode" not in kwargs
            has_shape = is_open and longest == runner.uniform_decode_query_len
            if has_shape and _holds_prompt(runner.input_batch, kwargs["num_reqs"], longest):
                kwargs["force_uniform_decode"] = False
            return original(runner, **kwargs)

        return determine

    return PatchSet(Patch(GPUModelRunner, _DISPATCH, wrap))


def _holds_prompt(batch: Any, rows: int, longest: int) -> bool:
    """Whether a row is one that the Mamba builder calls a prefill."""
    computed = batch.num_computed_tokens_cpu[:rows]
    # A single token with a state to continue from is a decode, also within a prompt (vllm#42430).
    begins = computed == 0 if longest == 1 else computed < batch.num_prompt_tokens[:rows]
    return bool(begins.any())


FIX = Fix(
    header("one-token-prompt"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.runner:graphs_of_batches",
        with_fix={"first_token": "PIECEWISE", "decodes": "FULL"},
        without_fix={"first_token": "FULL", "decodes": "FULL"},
    ),
)
