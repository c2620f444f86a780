"""Mutants of what gated delta nets are told: the slots that a graph reads, and what a prefill is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.mutants.slots import differ
from hybridwatch_engine.mutants.tally import Tally


def stale_slots(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Leave in the buffer that graphs read the slots of the step before.

    Args:
        original: ``GDNAttentionMetadataBuilder.build``.
        tally: Reached with every step that refreshes the buffer.
    """

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
    """Give the second row that decodes the slot of the first one.

    Args:
        original: ``GDNAttentionMetadataBuilder.build``.
        tally: Reached with every step in which two rows or more decode and none is a prefill.
    """

    def build(builder: Any, *args: Any, **kwargs: Any) -> Any:
        metadata = original(builder, *args, **kwargs)
        slots = metadata.non_spec_state_indices_tensor
        if slots is not None and not metadata.num_prefills and metadata.num_decodes > 1:
            tally.count(changed=differ(slots[1], slots[0]))
            slots[1] = slots[0]
        return metadata

    return build


def padding_as_prefill(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Count the rows that pad a batch of decodes among the prefills.

    The builder then takes the batch for a mixed one, and refreshes nothing that a graph reads.

    Args:
        original: ``split_decodes_and_prefills`` as the builder calls it.
        tally: Reached with every batch of decodes that has a padded row.
    """

    def split(common: Any, *args: Any, **kwargs: Any) -> Any:
        found = decodes, prefills, decode_tokens, _ = original(common, *args, **kwargs)
        lengths = common.query_start_loc_cpu.diff()
        padded = int((lengths == 0).sum())
        if prefills or not 0 < padded < decodes:
            return found
        tally.count(changed=True)
        return decodes - padded, padded, decode_tokens, 0

    return split
