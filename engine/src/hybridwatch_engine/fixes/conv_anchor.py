"""The convolution, too, reads where the previous step wrote; beyond upstream."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.fixes.fix import NOWHERE, Finding, Fix, Header
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.source import SourceTree, calls, mentions

_MIXER = "model_executor/layers/mamba/mamba_mixer2.py"
_FORWARD = "MambaMixer2.conv_ssm_forward"
_ANCHOR = "block_idx_last_scheduled_token_prev_step"

HEADER = Header(
    id="conv-anchor",
    target=f"{_MIXER} {_FORWARD}",
    why='With mamba_cache_mode="all" a step of speculation writes the convolution\'s last inputs '
    "into the block of its last draft. When that draft reached into another block and was "
    "rejected, the next step reads them by the block of the last accepted token. vllm#41233 gave "
    "the recurrent state an anchor and left this read as it was.",
    how="The decode rows of block_idx_last_computed_token, which nothing else reads while an "
    "engine speculates, are the blocks from which the previous step wrote.",
    upstream="vllm#41233 left it out; no report of it is known",
    present_from=NOWHERE,
    switch="live",
    scenario="reported/conv-anchor",
    remove_when="no supported release has mamba_cache_mode='all'; 0.32.0 took it out",
)


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


FIX = Fix(HEADER, probe, apply=_apply)
