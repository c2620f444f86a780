"""Mutants of what a decode server reads of a prefill server's blocks."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def other_blocks(
    original: Callable[..., Any], tally: Tally, *, kind: str, number: int
) -> Callable[..., Any]:
    """Read the block before in place of each block.

    ``kind`` and ``number``: which group of the cache, of those with ``"mamba"`` states or of those
    with ``"attention"`` keys. A model's first layer need not be in its first group.
    """

    def read_blocks(worker: Any, read_spec: Any, *args: Any, **named: Any) -> Any:
        remote = list(read_spec.remote_block_ids)
        groups = _groups(worker, kind)
        if number < len(groups):
            group = groups[number]
            wrong = [max(block - 1, 1) for block in remote[group]]
            tally.count(changed=wrong != list(remote[group]))
            remote[group] = wrong
        spec = replace(read_spec, remote_block_ids=remote)
        return original(worker, spec, *args, **named)

    return read_blocks


def nothing(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Read nothing, and go on as if everything had come."""

    def read_blocks(worker: Any, read_spec: Any, *args: Any, **named: Any) -> Any:
        tally.count(changed=any(read_spec.local_block_ids))
        return original(worker, _only(read_spec, ()), *args, **named)

    return read_blocks


def blocks_of_another(original: Callable[..., Any], tally: Tally) -> Callable[..., Any]:
    """Read the blocks of the request before in place of each request's, as far as they go."""
    before: list[list[int]] = []

    def read_blocks(worker: Any, read_spec: Any, *args: Any, **named: Any) -> Any:
        own = [list(group) for group in read_spec.remote_block_ids]
        if not own:
            return original(worker, read_spec, *args, **named)
        pairs = zip(own, before or own, strict=True)
        wrong = [[*theirs[: len(mine)], *mine[len(theirs) :]] for mine, theirs in pairs]
        before[:] = own
        tally.count(changed=wrong != own)
        return original(worker, replace(read_spec, remote_block_ids=wrong), *args, **named)

    return read_blocks


def states_when_next(
    original: Callable[..., Any], tally: Tally, *, in_time: bool
) -> Callable[..., Any]:
    """Read the states of a request when the blocks of the next one are read.

    ``in_time``: whether they are read with its other blocks, too; else they come late.
    """
    waiting: list[tuple[Any, dict[str, Any]]] = []

    def read_blocks(worker: Any, *, read_spec: Any, **named: Any) -> Any:
        states = _groups(worker, "mamba")
        while waiting:
            late_spec, late = waiting.pop()
            original(worker, read_spec=late_spec, **late)
            # Nobody waits for this one.
            worker._recving_transfers.pop(late["request_id"], None)  # noqa: SLF001
            tally.count(changed=True)
        if any(read_spec.local_block_ids):
            name = f"{named['request_id']} again"
            waiting.append((_only(read_spec, states), named | {"request_id": name}))
            if not in_time:
                others = set(range(len(read_spec.local_block_ids))) - set(states)
                read_spec = _only(read_spec, others)
        return original(worker, read_spec=read_spec, **named)

    return read_blocks


def _only(read_spec: Any, groups: Collection[int]) -> Any:
    """Leave the blocks of these groups alone."""
    kept = {
        side: [
            list(blocks) if place in groups else []
            for place, blocks in enumerate(getattr(read_spec, side))
        ]
        for side in ("local_block_ids", "remote_block_ids")
    }
    return replace(read_spec, **kept)


def _groups(worker: Any, kind: str) -> list[int]:
    """Places of the groups of a kind: vLLM has classes for states and classes for keys."""
    names = [spec_type.__name__ for spec_type in worker._group_spec_types]  # noqa: SLF001
    return [place for place, name in enumerate(names) if ("Mamba" in name) == (kind == "mamba")]
