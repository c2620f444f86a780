"""What a speculating engine with the Mamba cache mode ``all`` makes of its slots and blocks."""

from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine_lab.exercise.builder import (
    BLOCK,
    MAX_MODEL_LEN,
    batch_of,
    build_config,
    build_spec,
    make_builder,
)

DRAFTS: Final = 2
_TOKENS: Final = 1 + DRAFTS
_COLUMNS: Final = MAX_MODEL_LEN // BLOCK + DRAFTS


def width_of_graph_slots() -> dict[str, Any]:
    """Columns of the slots that a FULL graph reads, and what happens to a full block table."""
    builder = make_builder("all", DRAFTS)
    width = builder.state_indices_tensor_d.shape[1]
    try:
        _decodes(builder, columns=_COLUMNS)
    except RuntimeError as error:
        return {"columns": width, "build": type(error).__name__}
    return {"columns": width, "build": "done"}


def rows_of_graph() -> dict[str, Any]:
    """Block indices of a graph's batch: two requests and a row of padding, three tokens each.

    -1 is what an earlier batch has left behind.
    """
    builder = make_builder("all", DRAFTS)
    builder.block_idx_last_scheduled_token.fill_(-1)
    builder.block_idx_last_computed_token.fill_(-1)
    final = _decodes(builder, padding=1)
    return {
        "requests": final.num_reqs,
        "scheduled": final.block_idx_last_scheduled_token.tolist(),
        "computed": final.block_idx_last_computed_token.tolist(),
    }


def anchors_of_step() -> dict[str, Any]:
    """The blocks that a step is told: of a request remembered, of one forgotten, of padding."""
    import numpy as np
    from vllm.v1.worker import mamba_utils

    anchors = SimpleNamespace(np=np.zeros(3, dtype=np.int32), copy_to_gpu=lambda: None)
    nothing = SimpleNamespace(
        finished_req_ids=(),
        preempted_req_ids=(),
        scheduled_cached_reqs=SimpleNamespace(resumed_req_ids=()),
    )
    batch = SimpleNamespace(req_ids=["a", "b"])
    mamba_utils.preprocess_mamba_all_specdec(nothing, batch, {"a": 5}, 2, anchors)
    return {"anchors": anchors.np.tolist()}


def pages_of_request() -> dict[str, Any]:
    """Blocks counted for the longest request, and whether a row of the block table holds them."""
    spec, config = build_spec("all", DRAFTS), build_config("all", DRAFTS)
    width = _COLUMNS
    if hasattr(spec, "max_num_blocks_per_req"):  # elsewhere it is worked out without the spec
        width = spec.max_num_blocks_per_req(config, MAX_MODEL_LEN)
    return {
        "pages": spec.max_memory_usage_bytes(config) // spec.page_size_bytes,
        "row": width,
    }


def blocks_of_convolution() -> dict[str, Any]:
    """The blocks from which two decodes read their convolution.

    The first has computed 37 tokens, so its last accepted one is in block 2, and wrote from block
    3 on; of the second, which has computed 61, nothing is remembered.
    """
    import torch

    final = _decodes(make_builder("all", DRAFTS), prev_last_scheduled_idx=torch.tensor([3, -1]))
    return {"read_from": final.block_idx_last_computed_token.tolist()}


def _decodes(builder: Any, *, columns: int = 0, padding: int = 0, **others: Any) -> Any:
    """Metadata of two requests, 40 and 64 tokens long with their drafts.

    Args:
        builder: Makes them.
        columns: Blocks of each request; as many as the builder has room for when left out.
        padding: Rows of padding.
        others: Whatever else the builder is given.
    """
    import torch

    columns = columns or builder.state_indices_tensor_d.shape[1]
    batch = batch_of([40, 64], tokens=_TOKENS, columns=columns, padding=padding)
    accepted = torch.tensor([1, 2, *[1] * padding], dtype=torch.int32)
    return builder.build(0, batch, num_accepted_tokens=accepted, **others)
