"""A planted fault: a new request begins with whatever Mamba state its slot holds.

Nothing is wrong while every slot is fresh. Once slots go from hand to hand a request continues from
what another one has left, so whether a scenario sees it says whether its slots are used again.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet


def _all_continue(original: Callable[..., Any]) -> Callable[..., Any]:
    """Say of every prompt, its first chunk too, that there is a state to begin with."""

    def compute(builder: Any, *args: Any, **kwargs: Any) -> Any:
        metadata = original(builder, *args, **kwargs)
        begun = metadata.has_initial_states_p
        if begun is None:
            return metadata
        return replace(metadata, has_initial_states_p=begun.new_ones(begun.shape))

    return compute


def unzeroed_state() -> PatchSet:
    """Patches that let new requests begin with what is there."""
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    builder = BaseMambaAttentionMetadataBuilder
    return PatchSet(Patch(builder, "_compute_common_metadata", _all_continue))
