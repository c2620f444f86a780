"""What the scheduler says of each request of a step, kept from its outputs alone.

No table, buffer or metadata of a model runner goes into it, so it can be held against all of them.
The fields are those of ``v1/core/sched/output.py``.

The rules of state slots are those of ``v1/attention/backends/utils.py
mamba_get_block_table_tensor``, in words of our own: a request has one slot and those of its drafts
behind it; under ``align`` they begin at the block of its last token, under ``all`` every block has
one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from hybridwatch_engine.model_runner import block_size
from hybridwatch_engine.probes.state_slots import slots_in
from hybridwatch_engine.replays import Replay


@dataclass(frozen=True, slots=True)
class ScheduledRow:
    """One request in one step.

    Attributes:
        blocks: Ids of its blocks, by cache group.
        computed: Tokens computed before the step.
        tokens: Tokens of the step, drafts included.
        drafts: Of these, drafts.
        accepted: Tokens that its step before gave, drafts that were taken and the one behind them;
            1 where none was drafted.
        prompt: Tokens of its prompt; on model runner V2, where it was preempted, with what it had
            said before.
    """

    blocks: tuple[tuple[int, ...], ...]
    computed: int
    prompt: int = 0
    tokens: int = 0
    drafts: int = 0
    accepted: int = 1

    @property
    def length(self) -> int:
        """Tokens of its sequence at the end of the step, drafts included."""
        return self.computed + self.tokens

    @property
    def decodes(self) -> bool:
        """Whether the step computes one token of it and drafts, behind others; not a prompt."""
        return self.computed > 0 and self.tokens == 1 + self.drafts

    def slots(self, group: int, size: int) -> list[int]:
        """Where the keys of the step's tokens go in a cache group whose blocks have ``size``."""
        blocks = self.blocks[group]
        places = range(self.computed, self.length)
        return [blocks[place // size] * size + place % size for place in places]


class ScheduledRequests:
    """The requests that a scheduler has handed out and not yet taken back."""

    def __init__(self) -> None:
        self._rows: dict[str, ScheduledRow] = {}

    def step(self, output: Any) -> dict[str, ScheduledRow]:
        """Take a scheduler's output in.

        Returns:
            The requests of the step by id. One that was handed out before the first output that
            was taken in is left out: its blocks are not known.
        """
        for request in output.finished_req_ids:
            self._rows.pop(request, None)
        for new in output.scheduled_new_reqs:
            tokens = getattr(new, "prefill_token_ids", None) or new.prompt_token_ids or ()
            blocks = _added((), new.block_ids)
            self._rows[new.req_id] = ScheduledRow(blocks, new.num_computed_tokens, len(tokens))
        cached = output.scheduled_cached_reqs
        going_on = zip(
            cached.req_ids, cached.new_block_ids, cached.num_computed_tokens, strict=True
        )
        for request, blocks, computed in going_on:
            if request in cached.resumed_req_ids:
                prompt = self._rows[request].prompt if request in self._rows else 0
                self._rows[request] = ScheduledRow(_added((), blocks), computed, prompt)
            elif request in self._rows:
                self._rows[request] = _advance(self._rows[request], blocks, computed)
        drafts = output.scheduled_spec_decode_tokens
        for request, tokens in output.num_scheduled_tokens.items():
            if request in self._rows:
                drafted = len(drafts.get(request, ()))
                self._rows[request] = replace(self._rows[request], tokens=tokens, drafts=drafted)
        return {
            request: self._rows[request]
            for request in output.num_scheduled_tokens
            if request in self._rows
        }


def _advance(
    row: ScheduledRow, blocks: Iterable[Iterable[int]] | None, computed: int
) -> ScheduledRow:
    rejected = row.length - computed
    accepted = 1 + row.drafts - rejected
    return replace(row, blocks=_added(row.blocks, blocks), computed=computed, accepted=accepted)


def _added(
    blocks: tuple[tuple[int, ...], ...], added: Iterable[Iterable[int]] | None
) -> tuple[tuple[int, ...], ...]:
    if added is None:
        return blocks
    more = tuple(map(tuple, added))
    return tuple(map(tuple.__add__, blocks, more)) if blocks else more


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
