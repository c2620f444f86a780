"""A cache group in a replay: what its metadata say, and what the scheduler's blocks make of it.

The rules of state slots are those of ``v1/attention/backends/utils.py
mamba_get_block_table_tensor``, in words of our own: a request has one slot and those of its drafts
behind it; under ``align`` they begin at the block of its last token, under ``all`` every block has
one.
"""

from dataclasses import dataclass
from typing import Any

from hybridwatch_engine.model_runner import block_size
from hybridwatch_engine.probes.scheduled import ScheduledRow
from hybridwatch_engine.probes.state_slots import slots_in
from hybridwatch_engine.replays import Replay


@dataclass(frozen=True, slots=True)
class ReplayedGroup:
    """Layers that share blocks, and the metadata that a graph reads of them.

    Attributes:
        number: Which of the runner's groups.
        size: Tokens of a block as attention numbers them.
        whole: Tokens of a block as the scheduler numbers them.
        mode: Which states are kept (``mamba_cache_mode``).
        reads: The metadata, of one layer for all.
    """

    number: int
    size: int
    whole: int
    mode: str
    reads: Any

    def block_table(self) -> list[list[int]]:
        """What attention reads, row by row; nothing of other layers."""
        table = getattr(self.reads, "block_table", None)
        return [] if table is None else list(table.tolist())

    def blocks(self, row: ScheduledRow) -> list[int]:
        """The blocks that a sequence reaches, as attention numbers them."""
        parts = range(self.whole // self.size)
        whole = row.blocks[self.number]
        numbered = [block * len(parts) + part for block in whole for part in parts]
        return numbered[: -(-row.length // self.size)]

    def state_slots(self) -> list[list[int]]:
        """The state slots of each row; nothing of attention.

        Nothing either where rows with drafts and rows without have a table each, and where a graph
        was captured with prompts: such rows are not in the order of the batch.
        """
        reads = self.reads
        if not hasattr(reads, "num_decodes") or reads.num_prefills:
            return []
        if getattr(reads, "num_spec_decodes", 0) and reads.num_decodes:
            return []
        used = slots_in(reads)
        return [] if used is None else list(used.reshape(len(used), -1).tolist())

    def states(self, row: ScheduledRow) -> list[int]:
        """The state slots of a request that decodes."""
        blocks, last = row.blocks[self.number], (row.length - 1) // self.whole
        if self.mode == "all":
            return list(blocks[: last + 1])
        first = last if self.mode == "align" else 0
        return list(blocks[first : first + 1 + row.drafts])

    def accepted(self, row: ScheduledRow) -> set[int]:
        """Counts that are right; a state that is copied to another block begins there at 1."""
        moved = (row.computed - 1) // self.whole != (row.length - 1) // self.whole
        return {row.accepted, 1} if self.mode == "align" and moved else {row.accepted}


def find_groups(runner: Any, replay: Replay) -> list[ReplayedGroup]:
    """The cache groups that a replay reads."""
    mode = runner.vllm_config.cache_config.mamba_cache_mode
    found = []
    for number, group in enumerate(runner.kv_cache_config.kv_cache_groups):
        names = [name for name in group.layer_names if name in replay.reads]
        if names:
            whole = group.kv_cache_spec.block_size
            size = block_size(runner, number)
            found.append(ReplayedGroup(number, size, whole, mode, replay.reads[names[0]]))
    return found


def numbers(metadata: Any, name: str) -> list[int]:
    """A field of metadata as numbers; none where these metadata do not have it."""
    values = getattr(metadata, name, None)
    return [] if values is None else list(values.reshape(-1).tolist())
