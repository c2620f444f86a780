"""A first token never rides in a FULL decode graph; beyond upstream (vllm#57720 is open)."""

from collections.abc import Callable
from typing import Any

from hybridwatch_engine.fixes.fix import NOWHERE, Finding, Fix, Header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, mentions

_RUNNER = "v1/worker/gpu_model_runner.py"
_DISPATCH = "_determine_batch_execution_and_padding"

HEADER = Header(
    id="one-token-prompt",
    target=f"{_RUNNER} GPUModelRunner.{_DISPATCH}",
    why="Batches are matched to decode graphs by shape alone. The first token of a prompt, "
    "scheduled on its own, has the shape of a decode but no state to continue: the Mamba builder "
    "rightly calls it a prefill, and the graph then replays over slots that nobody refreshed.",
    how="A batch with a row of which nothing is computed yet is no uniform decode batch, so no "
    "FULL graph replays it.",
    upstream="vllm#57720 (open)",
    present_from=NOWHERE,
    switch="live",
    scenario="reported/i57720-one-token-prompt",
    remove_when="upstream has it in every supported release",
)


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
    """Call a batch with a first token not uniform; one look at a NumPy array on the host."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def determine(runner: Any, **kwargs: Any) -> Any:
            if kwargs["max_num_scheduled_tokens"] == 1 and "force_uniform_decode" not in kwargs:
                computed = runner.input_batch.num_computed_tokens_cpu[: kwargs["num_reqs"]]
                if not computed.all():
                    kwargs["force_uniform_decode"] = False
            return original(runner, **kwargs)

        return determine

    return PatchSet(Patch(GPUModelRunner, _DISPATCH, wrap))


FIX = Fix(HEADER, probe, apply=_apply)
