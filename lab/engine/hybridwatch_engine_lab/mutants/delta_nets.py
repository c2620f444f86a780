"""Mutants of the slots that gated delta nets read, and that their graphs read."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.mutants.tally import Tally, differ


def stale_slots(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave in the buffer that graphs read the slots of the step before."""

    def build(builder: Any, *args: Any, **kwargs: Any) -> Any:
        buffer = builder.non_spec_state_indices_tensor
        before = buffer.clone()
        metadata = original(builder, *args, **kwargs)
        slots = metadata.non_spec_state_indices_tensor
        if slots is None or slots.data_ptr() != buffer.data_ptr():
            return metadata
        right = slots.clone()
        buffer.copy_(before)
        tally.count(changed=differ(slots, right))
        return replace(metadata, non_spec_state_indices_tensor=right)

    return build


def shared_slots(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Give the second row that decodes the slot of the first one."""

    def build(builder: Any, *args: Any, **kwargs: Any) -> Any:
        metadata = original(builder, *args, **kwargs)
        slots = metadata.non_spec_state_indices_tensor
        if slots is not None and not metadata.num_prefills and metadata.num_decodes > 1:
            tally.count(changed=differ(slots[1], slots[0]))
            slots[1] = slots[0]
        return metadata

    return build


def padding_unrefreshed(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave what graphs read as it was for each batch that has padded rows.

    As if padded rows were prefills: a mixed batch refreshes nothing. Its metadata stay right, for a
    CPU's kernels die of prefills without a token.
    """

    def build(
        builder: Any, common_prefix_len: int, common_attn_metadata: Any, *args: Any, **kwargs: Any
    ) -> Any:
        given = (common_prefix_len, common_attn_metadata, *args)
        padded = bool((common_attn_metadata.query_start_loc_cpu.diff() == 0).any())
        if not (builder.use_full_cuda_graph and padded):
            return original(builder, *given, **kwargs)
        builder.use_full_cuda_graph = False
        try:
            metadata = original(builder, *given, **kwargs)
        finally:
            builder.use_full_cuda_graph = True
        right = metadata.non_spec_state_indices_tensor
        if right is not None:
            read = builder.non_spec_state_indices_tensor[: len(right)]
            tally.count(changed=differ(read, right))
        return metadata

    return build
