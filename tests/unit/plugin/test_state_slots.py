"""Where recurrent states lie, read off the metadata of made-up builders."""

from types import SimpleNamespace

import numpy as np
import pytest
from hybridwatch_engine.probes.state_slots import (
    DeltaNetGroup,
    MambaGroup,
    SlotPlace,
    list_layers,
    slots_in,
)

TABLE = [[10, 11, 12, 13]]


def group(**fields):
    """One speculating row in mode ``all``, whose last step wrote from column 1 on."""
    cache = SimpleNamespace(mamba_cache_mode="all")
    builder = SimpleNamespace(vllm_config=SimpleNamespace(cache_config=cache), use_spec_decode=True)
    metadata = SimpleNamespace(
        num_accepted_tokens=[2],
        state_indices_tensor_d=TABLE,
        block_idx_last_computed_token=[1],
        num_decodes=1,
        **fields,
    )
    return MambaGroup("a", builder, metadata, (), 1)


def test_an_anchor_says_where_the_step_before_has_written():
    found = group(block_idx_last_scheduled_token_prev_step=[1]).read(0)
    assert found == SlotPlace(state=12, window=11, offset=1)


@pytest.mark.parametrize("fields", [{}, {"block_idx_last_scheduled_token_prev_step": None}])
def test_without_one_the_metadata_cannot_tell(fields):
    assert group(**fields).read(0) is None


BUILDER = SimpleNamespace(num_spec=2)


def delta_net_group(rows: int, **fields: object) -> DeltaNetGroup:
    """A batch; what is not named is as in one without drafts."""
    nothing = {"spec_sequence_masks": None, "spec_state_indices_tensor": None}
    counts = {"num_decodes": 0, "num_spec_decodes": 0, "num_accepted_tokens": None}
    return DeltaNetGroup("a", BUILDER, SimpleNamespace(**{**nothing, **counts, **fields}), (), rows)


def test_without_drafts_a_row_has_one_slot_whether_it_decodes_or_begins():
    batch = delta_net_group(3, num_decodes=2, non_spec_state_indices_tensor=np.array([7, 8, 9]))
    assert batch.decodes == 2
    assert [batch.read(row) for row in range(2)] == [SlotPlace(7, 7, 0), SlotPlace(8, 8, 0)]
    assert batch.written(2, 5) == SlotPlace(9, 9, 0)


def test_padding_is_no_request():
    assert (
        delta_net_group(
            1, num_decodes=4, non_spec_state_indices_tensor=np.array([7, 0, 0, 0])
        ).decodes
        == 1
    )


def test_with_drafts_a_row_goes_on_behind_what_was_accepted():
    batch = delta_net_group(
        1,
        num_spec_decodes=1,
        num_accepted_tokens=np.array([3]),
        spec_sequence_masks=np.array([True]),
        spec_state_indices_tensor=np.array([[4, 5, 6]]),
    )
    assert batch.read(0) == SlotPlace(state=6, window=4, offset=2)
    assert batch.written(0, 1) == SlotPlace(state=5, window=4, offset=1)


def test_in_a_batch_of_both_each_kind_is_counted_by_itself():
    batch = delta_net_group(
        4,
        num_spec_decodes=2,
        num_accepted_tokens=np.array([1, 2]),
        spec_sequence_masks=np.array([False, True, False, True]),
        spec_state_indices_tensor=np.array([[20, 21, 22], [30, 31, 32]]),
        non_spec_state_indices_tensor=np.array([7, 8]),
    )
    assert batch.written(0, 0) == SlotPlace(7, 7, 0)
    assert batch.read(1) == SlotPlace(20, 20, 0)
    assert batch.written(2, 0) == SlotPlace(8, 8, 0)
    assert batch.read(3) == SlotPlace(31, 30, 1)


@pytest.mark.parametrize(
    ("drafts", "slots"), [(0, [7, 8]), (1, [[4, 5, 6]])], ids=["without", "with"]
)
def test_a_graph_reads_the_table_of_its_kind(drafts, slots):
    metadata = SimpleNamespace(
        num_spec_decodes=drafts,
        spec_state_indices_tensor=[[4, 5, 6]],
        non_spec_state_indices_tensor=[7, 8],
    )
    assert slots_in(metadata) == slots


def test_metadata_of_mamba_has_one_table():
    assert slots_in(SimpleNamespace(state_indices_tensor_d=[1])) == [1]


def test_layers_are_found_by_the_builder_that_may_not_know_them():
    mine, other = object(), object()
    groups = [
        [SimpleNamespace(layer_names=["x"], metadata_builders=[other])],
        [SimpleNamespace(layer_names=["y", "z"], metadata_builders=[mine])],
    ]
    assert list_layers(SimpleNamespace(attn_groups=groups), mine) == ["y", "z"]
