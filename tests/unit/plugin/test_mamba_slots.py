"""Where a row's state lies, by metadata of releases with and without the anchor's field."""

from types import SimpleNamespace

import pytest
from hybridwatch_engine.probes.mamba_slots import MambaGroup
from hybridwatch_engine.probes.state_slots import SlotPlace

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
