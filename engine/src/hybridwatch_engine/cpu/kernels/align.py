"""Copies of ``align`` mode with speculation: states that move from one cache block to another.

In this mode a request works in one block and its drafts in the blocks after it. Before a step that
works in a new block the state of the last accepted token moves there; after a step that has filled
a block the state at its end moves into it, where the prefix cache finds it. On GPUs one kernel
decides and copies (``precopy_mamba_align_fused_kernel``, ``postprocess_mamba_fused_kernel`` in
``v1/worker/mamba_utils.py``); a CPU needs no kernel, so these are decisions over lists and copies
of tensors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, slots=True)
class CachedState:
    """One kind of state of one layer.

    Attributes:
        slots: The cache, (slots, ...).
        table: Slots of each request's columns, (requests, columns).
        window: Axis along which the conv state holds inputs; None for a state of the recurrence.
    """

    slots: Tensor
    table: Tensor
    window: int | None

    def move(self, request: int, source: int, target: int, later: int) -> None:
        """Copy one request's state from column to column.

        Args:
            request: Row of the table.
            source: Column that the last step worked in.
            target: Column that gets the state.
            later: Tokens after the step's first one whose state is copied: so many entries into a
                conv state, so many columns after the source for others.
        """
        into = self.slots[int(self.table[request, target])]
        if self.window is None:
            into.copy_(self.slots[int(self.table[request, source + later])])
            return
        axis = self.window - 1
        count = into.shape[axis] - later
        held = self.slots[int(self.table[request, source])].narrow(axis, later, count)
        # A copy of its own: source and target may be one slot.
        into.narrow(axis, 0, count).copy_(held.clone())


def cached_states(
    context: Any, caches: Mapping[int, Tensor], tables: Sequence[Tensor]
) -> list[CachedState]:
    """Find the states that vLLM's context of these copies holds as addresses.

    Args:
        context: ``MambaSpecDecodeGPUContext``, initialised.
        caches: The caches of all Mamba layers by their addresses.
        tables: Block table of each group of layers, or its first rows.
    """
    from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first

    window = 2 if is_conv_state_dim_first() else 1
    facts = (context.state_base_addrs, context.state_group_indices, context.state_conv_widths)
    return [
        CachedState(caches[address], _whole_table(tables[group]), window if width else None)
        for address, group, width in zip(*(fact.tolist() for fact in facts), strict=True)
    ]


def _whole_table(rows: Tensor) -> Tensor:
    """The table that these first rows are a view of; a later step has more requests."""
    storage = rows.untyped_storage().nbytes() // rows.element_size()
    count = (storage - rows.storage_offset()) // rows.stride(0)
    return rows.as_strided((count, rows.shape[1]), rows.stride())


def move_before_step(
    states: Sequence[CachedState],
    targets: Sequence[int],
    sources: Sequence[int],
    later: Sequence[int],
) -> None:
    """Move states into the blocks that a step is going to work in.

    Args:
        states: All states of all layers.
        targets: Column of each request's block.
        sources: Column it worked in before; negative for a request that begins.
        later: Its accepted drafts.
    """
    for request, (target, source, drafts) in enumerate(zip(targets, sources, later, strict=True)):
        if source >= 0 and source != target:
            for state in states:
                state.move(request, source, target, drafts)


@dataclass(frozen=True, slots=True)
class RequestStep:
    """One request's part in a step.

    Attributes:
        column: Column of the block that it worked in.
        computed: Tokens computed before the step.
        scheduled: Tokens of the step, drafts included.
        drafts: Drafts among them.
        accepted: Accepted tokens, at least one.
    """

    column: int
    computed: int
    scheduled: int
    drafts: int
    accepted: int


def move_after_step(
    states: Sequence[CachedState], steps: Sequence[RequestStep], block_size: int
) -> list[int]:
    """Move the states at block ends that a step has passed into the blocks that have become full.

    Args:
        states: All states of all layers.
        steps: One for each request.
        block_size: Tokens of a block.

    Returns:
        The accepted counts with which the next step finds the states: one where a state has moved
        within its own block.
    """
    counts = []
    for request, step in enumerate(steps):
        certain = step.computed + step.scheduled - step.drafts
        full = (certain + step.accepted - 1) // block_size
        later = full * block_size - certain
        counts.append(step.accepted)
        if later < 0:
            continue
        if step.column == full - 1:
            counts[-1] = 1
        if step.column != full - 1 or later:
            for state in states:
                state.move(request, step.column, full - 1, later)
    return counts
