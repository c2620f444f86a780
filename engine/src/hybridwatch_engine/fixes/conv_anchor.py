"""The convolution, too, reads where the previous step wrote; beyond upstream."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.fixes.fix import Exercise, Finding, Fix
from hybridwatch_engine.fixes.headers import header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_MIXER = "model_executor/layers/mamba/mamba_mixer2.py"
_FORWARD = "MambaMixer2.conv_ssm_forward"
_ANCHOR = "block_idx_last_scheduled_token_prev_step"


def probe(tree: SourceTree) -> Finding:
    """Look at the block from which the update of the convolution reads."""
    forward = tree.function(_MIXER, _FORWARD)
    updates = calls(forward, "causal_conv1d_update") if forward else []
    read = [
        getattr(keyword.value, "id", "")
        for call in updates
        for keyword in call.keywords
        if keyword.arg == "initial_state_idx"
    ]
    if forward is None or not read or not mentions(forward, f"{_ANCHOR}_d"):
        return Finding("not-applicable", f"{_MIXER} reads no convolution by block and step")
    if _ANCHOR in read[0]:
        return Finding("present", f"{_MIXER} reads the convolution where the last step wrote")
    return Finding("lacking", f"{_MIXER}:{updates[0].lineno} reads by {read[0]}")


def _apply() -> PatchSet:
    """Let the index by which the convolution reads be the anchor of the previous step."""
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def update(builder: Any, metadata: Any) -> Any:
            anchors = metadata.block_idx_last_scheduled_token_prev_step
            if anchors is not None:
                read = metadata.block_idx_last_computed_token.clone()
                read[: metadata.num_decodes] = anchors[: metadata.num_decodes]
                metadata = replace(metadata, block_idx_last_computed_token=read)
            return original(builder, metadata)

        return update

    name = "_update_metadata_for_cudagraph_capture"
    return PatchSet(Patch(BaseMambaAttentionMetadataBuilder, name, wrap))


FIX = Fix(
    header("conv-anchor"),
    probe,
    apply=_apply,
    exercise=Exercise(
        "hybridwatch_engine_lab.exercise.builder:blocks_of_convolution",
        with_fix={"read_from": [3, 3]},
        without_fix={"read_from": [2, 3]},
    ),
)
