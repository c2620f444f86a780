"""Mutants of what a decode server reads of a prefill server's blocks."""

from collections.abc import Callable
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


def _groups(worker: Any, kind: str) -> list[int]:
    """Places of the groups of a kind: vLLM has classes for states and classes for keys."""
    names = [spec_type.__name__ for spec_type in worker._group_spec_types]  # noqa: SLF001
    return [place for place, name in enumerate(names) if ("Mamba" in name) == (kind == "mamba")]
