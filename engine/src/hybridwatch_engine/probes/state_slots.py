"""Recurrent layers that share a block table, and where their states lie, for every family.

Each family has metadata of its own. The rules of Mamba and of short convolutions are those of
``model_executor/layers/mamba/mamba_mixer2.py conv_ssm_forward``. In mode
``all`` a row of the block table has a column for each block of the text and the speculative slots
behind the last one; in the other modes a request has one slot and the speculative ones behind it.

The rules of gated delta nets are those of ``v1/attention/backends/gdn_attn.py`` and of
``model_executor/layers/mamba/gdn``. Rows with drafts and rows without have a table each, in the
order of the batch: a row's place in its table is the number of rows of its kind before it. A
request has one slot and the speculative ones behind it, in every cache mode.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hybridwatch_engine.probes.counting import UnsupportedError

Content = tuple[tuple[Any, ...], ...]
"""What lies at a place, layer by layer: a convolution's inputs, then the state, if there is one."""

_MOST_PARTS = 2
"""What a layer keeps of a request: the convolution's last inputs and, but for short convolutions,
the recurrent state."""


def builder_classes() -> tuple[type, type]:
    """Give vLLM's classes that build the metadata of Mamba and of gated delta nets."""
    from vllm.v1.attention.backends.gdn_attn import GDNAttentionMetadataBuilder
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadataBuilder

    return BaseMambaAttentionMetadataBuilder, GDNAttentionMetadataBuilder


def require_known_builders(runner: Any) -> None:
    """Refuse an engine that has recurrent layers whose metadata cannot be read here.

    Raises:
        UnsupportedError: With a layer and what builds its metadata.
    """
    from vllm.v1.kv_cache_interface import MambaSpec

    for group in (one for groups in runner.attn_groups for one in groups):
        builder = group.backend.get_builder_cls()
        known = issubclass(builder, builder_classes())
        if isinstance(group.kv_cache_spec, MambaSpec) and not known:
            raise UnsupportedError(
                f"{group.layer_names[0]}: expected metadata built as for Mamba or gated delta "
                f"nets, found {builder.__name__}"
            )


def list_layers(runner: Any, builder: Any) -> Sequence[str]:
    """Name the layers for which a builder makes metadata; not each builder knows its own."""
    groups = (group for groups in runner.attn_groups for group in groups)
    return next(
        group.layer_names
        for group in groups
        if any(one is builder for one in group.metadata_builders)
    )


def slots_in(metadata: Any) -> Any:
    """Give the state slots that a decode graph over this metadata uses, row by row."""
    if not hasattr(metadata, "non_spec_state_indices_tensor"):
        return metadata.state_indices_tensor_d
    if metadata.num_spec_decodes:
        return metadata.spec_state_indices_tensor
    return metadata.non_spec_state_indices_tensor


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """Where one request's state lies in the layers of one cache group.

    Attributes:
        state: Slot of the recurrent state.
        window: Slot of the convolution's last inputs.
        offset: Where in that slot they begin: behind as many as there were accepted drafts.
    """

    state: int
    window: int
    offset: int


@dataclass(frozen=True, slots=True)
class StateGroup:
    """Layers that share a block table, with the metadata of one step; a family fills in the rest.

    Attributes:
        key: Tells the group from the others of the engine.
        builder: vLLM's metadata builder of the group.
        metadata: What it has built.
        layers: vLLM's layers; ``kv_cache`` of each holds convolution windows and, but for short
            convolutions, states.
        rows: Requests in the batch; further rows are padding.
    """

    key: str
    builder: Any
    metadata: Any
    layers: Sequence[Any]
    rows: int

    @property
    def by_block(self) -> bool:
        """Whether the state of every block is kept (mode ``all``)."""
        return False

    @property
    def drafts(self) -> int:
        """Drafts that a request may have."""
        raise NotImplementedError

    @property
    def decodes(self) -> int:
        """Requests that decode; they come first in the batch."""
        raise NotImplementedError

    def read(self, row: int) -> SlotPlace | None:
        """Where a decoding row reads; ``None`` when the metadata cannot tell."""
        raise NotImplementedError

    def written(self, row: int, token: int) -> SlotPlace:
        """Where the state behind a token of a row was written.

        Args:
            row: Row of the batch.
            token: Which of its tokens in this step, from 0; the last one for a row of the prompt.
        """
        raise NotImplementedError

    def at_block_end(self, row: int, column: int) -> SlotPlace:
        """Where the prefix cache finds the state at the end of a block (mode ``all``)."""
        raise NotImplementedError

    def last_column(self, row: int) -> int:
        """The column of the last token of a row in this step, drafts included (mode ``all``)."""
        raise NotImplementedError

    def before(self, row: int) -> int:
        """Tokens of a decoding row that were computed before this step (mode ``all``)."""
        raise NotImplementedError

    def slots_short(self) -> int:
        """Slots that decoding rows need beyond those reserved, counted, and buffered for them."""
        return 0

    def content(self, place: SlotPlace) -> Content:
        """Copies of what lies at a place."""
        return tuple(tuple(self._content(layer, place)) for layer in self.layers)

    def _content(self, layer: Any, place: SlotPlace) -> Iterator[Any]:
        if not 1 <= len(layer.kv_cache) <= _MOST_PARTS:
            raise UnsupportedError(
                f"{type(layer).__name__}: expected a convolution's inputs and at most one state, "
                f"found {len(layer.kv_cache)} tensors kept for each request"
            )
        from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first

        windows, *states = layer.kv_cache
        window = windows[place.window]
        if not is_conv_state_dim_first():
            window = window.transpose(0, 1)  # channels first, inputs last
        length = window.shape[1] - self.drafts
        yield window[:, place.offset : place.offset + length].clone()
        yield from (state[place.state].clone() for state in states)


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
        """Where the state behind a token of a row was written."""
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
