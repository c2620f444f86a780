"""What the scheduler says of each request of a step, kept from its outputs alone.

No table, buffer or metadata of a model runner goes into it, so it can be held against all of them.
The fields are those of ``v1/core/sched/output.py``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any


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
                self._rows[request] = _gone_on(self._rows[request], blocks, computed)
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


def _gone_on(
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
