"""Mutants that lose what a finished request gives back."""

from collections.abc import Callable, Iterable
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def freed_block_lost(
    original: Callable[..., Any], tally: Tally, *, every: int
) -> Callable[..., Any]:
    """Around ``BlockPool.free_blocks``: one in ``every`` that become free is forgotten."""

    def is_kept(block: Any) -> bool:
        if block.is_null or block.ref_cnt != 1:
            return True
        lost = tally.reached % every == every - 1
        tally.count(changed=lost)
        return not lost

    def free_blocks(pool: Any, ordered_blocks: Iterable[Any]) -> None:
        original(pool, [block for block in ordered_blocks if is_kept(block)])

    return free_blocks


def state_slot_lost(
    original: Callable[..., Any], tally: Tally, *, every: int
) -> Callable[..., Any]:
    """Around ``RequestState.remove_request``: the slot of one request in ``every`` is forgotten."""

    def remove_request(states: Any, request_id: str) -> Any:
        slot = original(states, request_id)
        if slot is not None:
            lost = tally.reached % every == every - 1
            tally.count(changed=lost)
            if lost:
                states.free_indices.remove(slot)
        return slot

    return remove_request
