"""What a CPU's gated delta net keeps of its inputs behind a step of few drafts."""

from types import SimpleNamespace
from typing import Any, Final

from hybridwatch_engine_lab.exercise.trial import NotBuiltError

_WIDTH: Final = 3
"""Of the convolution; one of four has another kernel on some machines."""
_DRAFTS: Final = 3
_SIZE: Final = 32
"""Of a head; a layer has one for each of query, key and value."""


def window_after_short_step() -> dict[str, Any]:
    """Give a request whose window is 1, 2 a step of the token 9, alone and beside a longer step.

    Returns:
        The first inputs in its window afterwards, as many as the next step looks at.

    Raises:
        NotBuiltError: This engine has no such layer on a CPU.
    """
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        raise NotBuiltError("this engine does not compute gated delta nets on a CPU")
    return {"alone": _window([1]), "beside": _window([1 + _DRAFTS, 1])}


def _window(lengths: list[int]) -> list[int]:
    """The last row's window; ``lengths`` are the tokens of each row."""
    import torch
    from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention

    half = torch.bfloat16
    rows, kept = len(lengths), _WIDTH - 1 + _DRAFTS
    layer = SimpleNamespace(
        conv1d=SimpleNamespace(weight=torch.ones(3 * _SIZE, _WIDTH, dtype=half), bias=None),
        activation="silu",
        A_log=torch.zeros(1),
        dt_bias=torch.zeros(1, dtype=half),
        rearrange_mixed_qkv=lambda mixed: [
            one.unflatten(1, (1, -1)).unsqueeze(0).contiguous() for one in mixed.chunk(3, dim=1)
        ],
    )
    metadata = gdn_attention.GDNAttentionMetadata(
        *(0, 0, 0, 0, rows, sum(lengths), sum(lengths)),
        spec_state_indices_tensor=torch.arange(rows * (1 + _DRAFTS)).view(rows, -1).int(),
        spec_query_start_loc=torch.tensor([0, *lengths]).cumsum(0).int(),
        num_accepted_tokens=torch.ones(rows, dtype=torch.int32),
    )
    slots = rows * (1 + _DRAFTS)
    windows = torch.arange(1, kept + 1, dtype=half).expand(slots, 3 * _SIZE, kept).contiguous()
    gates = torch.zeros(sum(lengths), 1, dtype=half)
    inputs = torch.full((sum(lengths), 3 * _SIZE), 9.0, dtype=half)
    states = torch.zeros(slots, 1, _SIZE, _SIZE)
    gdn_attention._spec_forward(  # noqa: SLF001 - it is what the fix wraps
        *(layer, metadata, inputs, gates, gates, windows, states, _WIDTH, kept)
    )
    last = int(metadata.spec_state_indices_tensor[-1, 0])
    return [int(one) for one in windows[last, 0, : _WIDTH - 1]]
