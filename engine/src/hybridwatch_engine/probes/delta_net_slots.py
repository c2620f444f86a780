"""Where the states of gated delta nets lie, read off the metadata that the layers get.

The rules are those of ``v1/attention/backends/gdn_attn.py`` and of ``model_executor/layers/mamba/
gdn``. Rows with drafts and rows without have a table each, in the order of the batch: a row's place
in its table is the number of rows of its kind before it. A request has one slot and the speculative
ones behind it, in every cache mode.
"""

from dataclasses import dataclass

from hybridwatch_engine.probes.state_slots import SlotPlace, StateGroup


@dataclass(frozen=True, slots=True)
class DeltaNetGroup(StateGroup):
    """Gated delta nets that share a block table."""

    @property
    def drafts(self) -> int:
        """Drafts that a request may have."""
        return int(self.builder.num_spec)

    @property
    def decodes(self) -> int:
        """Requests that decode; they come first in the batch."""
        return min(int(self.metadata.num_decodes + self.metadata.num_spec_decodes), self.rows)

    def read(self, row: int) -> SlotPlace | None:
        """Where a decoding row reads."""
        if not self._has_drafts(row):
            return self._without_drafts(row)
        place = self._place(row)
        return self._behind(row, int(self.metadata.num_accepted_tokens[place]) - 1)

    def written(self, row: int, token: int) -> SlotPlace:
        """Where the state behind a token of a row was written."""
        return self._behind(row, token) if self._has_drafts(row) else self._without_drafts(row)

    def _has_drafts(self, row: int) -> bool:
        masks = self.metadata.spec_sequence_masks
        return masks is not None and bool(masks[row])

    def _place(self, row: int) -> int:
        """The row's place in the table of its kind."""
        masks = self.metadata.spec_sequence_masks
        if masks is None:
            return row
        return int((masks[:row] == masks[row]).sum())

    def _without_drafts(self, row: int) -> SlotPlace:
        slot = int(self.metadata.non_spec_state_indices_tensor[self._place(row)])
        return SlotPlace(slot, slot, 0)

    def _behind(self, row: int, token: int) -> SlotPlace:
        table = self.metadata.spec_state_indices_tensor[self._place(row)]
        return SlotPlace(int(table[token]), int(table[0]), token)
