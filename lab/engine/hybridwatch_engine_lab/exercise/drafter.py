"""Which blocks a draft model is sent to, in an engine with two cache groups."""

from typing import Any, Final
from unittest.mock import MagicMock

from hybridwatch_engine_lab.exercise.runner import real, stand_in

_ROWS: Final = 2
_OWN_GROUP: Final = 1


def blocks_of_draft_model() -> dict[str, Any]:
    """Block table and slots that a draft model gets whose layers are in the second group.

    Two rows padded to three; what is a group's own is told by hundreds.
    """
    import torch
    from vllm.v1.spec_decode.draft_model import DraftModelProposer

    # Nothing of a proposer matters here but its class and its group.
    drafter = DraftModelProposer.__new__(DraftModelProposer)
    drafter.kv_cache_gid = _OWN_GROUP
    runner = stand_in(attn_groups=[[], []], drafter=drafter, speculative_config=MagicMock())
    runner.kv_cache_config.kv_cache_groups = [MagicMock(), MagicMock()]
    tables = [_table(100), _table(200)]
    runner.input_batch.block_table.__getitem__.side_effect = tables.__getitem__
    _, common = real(runner, "_build_attention_metadata")(
        num_tokens=_ROWS,
        num_reqs=_ROWS,
        max_query_len=1,
        num_tokens_padded=_ROWS + 1,
        num_reqs_padded=_ROWS + 1,
        slot_mappings={group: torch.arange(3) + 1000 * (group + 1) for group in range(2)},
    )
    return {
        "blocks": common.block_table_tensor.tolist(),
        "slots": common.slot_mapping.tolist(),
    }


def _table(first: int) -> Any:
    """A block table of three rows of two blocks."""
    import torch

    blocks = torch.arange(first, first + 6, dtype=torch.int32).reshape(3, 2)
    return MagicMock(get_device_tensor=lambda rows: blocks[:rows])
