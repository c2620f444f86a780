"""Mutants of what a decode server reads of a prefill server's blocks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hybridwatch_engine.mutants.tally import Tally


def other_blocks(original: Callable[..., Any], tally: Tally, *, group: int) -> Callable[..., Any]:
    """Read the block before in place of each block.

    Around ``_read_blocks`` of the NIXL connector's worker, reached with every transfer. ``group``:
    which group of the cache.
    """

    def read_blocks(worker: Any, read_spec: Any, *args: Any, **named: Any) -> Any:
        remote = list(read_spec.remote_block_ids)
        if group < len(remote):
            wrong = [max(block - 1, 1) for block in remote[group]]
            tally.count(changed=wrong != list(remote[group]))
            remote[group] = wrong
        spec = replace(read_spec, remote_block_ids=remote)
        return original(worker, spec, *args, **named)

    return read_blocks
