"""Where the Mamba states of a batch lie, read off the metadata that the layers get.

The rules are those of ``model_executor/layers/mamba/mamba_mixer2.py conv_ssm_forward``. In mode
``all`` a row of the block table has a column for each block of the text and the speculative slots
behind the last one; in the other modes a request has one slot and the speculative ones behind it.
"""

from dataclasses import dataclass

from hybridwatch_engine.probes.state_slots import SlotPlace, StateGroup


@dataclass(frozen=True, slots=True)
class MambaGroup(StateGroup):
    """Layers of Mamba, or short convolutions, that share a block table."""

    @property
    def by_block(self) -> bool:
        """Whether the state of every block is kept (mode ``all``)."""
        return bool(self.builder.vllm_config.cache_config.mamba_cache_mode == "all")

    @property
    def drafts(self) -> int:
        """Drafts that a request may have."""
        return int(self.builder.num_spec_tokens)

    @property
    def decodes(self) -> int:
        """Requests that decode; they come first in the batch."""
        return min(int(self.metadata.num_decodes), self.rows)

    def read(self, row: int) -> SlotPlace | None:
        """Where a decoding row reads; ``None`` when the metadata cannot tell."""
        accepted = self.metadata.num_accepted_tokens
        offset = 0 if accepted is None else int(accepted[row]) - 1
        table = self.metadata.state_indices_tensor_d[row]
        if not self.by_block:
            return SlotPlace(int(table[offset]), int(table[0]), offset)
        window = int(table[self.metadata.block_idx_last_computed_token[row]])
        if not self.builder.use_spec_decode:
            return SlotPlace(window, window, 0)
        # A release without the anchor's fix has no field for it.
        anchors = getattr(self.metadata, "block_idx_last_scheduled_token_prev_step", None)
        if anchors is None:
            return None
        return SlotPlace(int(table[int(anchors[row]) + offset]), window, offset)

    def written(self, row: int, token: int) -> SlotPlace:
        """Where the state behind a token of a row was written.

        Args:
            row: Row of the batch.
            token: Which of its tokens in this step, from 0; the last one for a row of the prompt.
        """
        if row >= self.decodes:
            return self._written_by_prompt(row)
        table = self.metadata.state_indices_tensor_d[row]
        first = self.last_column(row) if self.by_block else 0
        return SlotPlace(int(table[first + token]), int(table[first]), token)

    def _written_by_prompt(self, row: int) -> SlotPlace:
        slots = self.metadata.state_indices_tensor_p[row - int(self.metadata.num_decodes)]
        slot = int(slots[self.last_column(row)] if self.by_block else slots)
        return SlotPlace(slot, slot, 0)

    def at_block_end(self, row: int, column: int) -> SlotPlace:
        """Where the prefix cache finds the state at the end of a block (mode ``all``)."""
        slot = int(self.metadata.state_indices_tensor_d[row, column])
        return SlotPlace(slot, slot, 0)

    def last_column(self, row: int) -> int:
        """The column of the last token of a row in this step, drafts included (mode ``all``)."""
        return int(self.metadata.block_idx_last_scheduled_token[row])

    def before(self, row: int) -> int:
        """Tokens of a decoding row that were computed before this step."""
        starts = self.metadata.query_start_loc_d
        tokens = 1 if starts is None else int(starts[row + 1] - starts[row])
        return int(self.metadata.seq_lens[row]) - tokens

    def slots_short(self) -> int:
        """Slots that decoding rows need beyond those reserved, counted, and buffered for them."""
        if not self.by_block:
            return 0
        spec, config = self.builder.kv_cache_spec, self.builder.vllm_config
        counted = -(-spec.max_memory_usage_bytes(config) // spec.page_size_bytes)
        reserved = min(counted, int(self.builder.state_indices_tensor_d.shape[1]))
        needs = (self.last_column(row) + 1 + self.drafts for row in range(self.decodes))
        return sum(max(0, need - reserved) for need in needs)
