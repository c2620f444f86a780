"""Rotary embeddings of tokens whose heads the model keeps apart, on a CPU."""

from typing import Any

from hybridwatch_engine_lab.exercise.trial import NotBuiltError

_TOKENS, _HEADS, _SIZE = 4, 2, 32


def heads_apart() -> dict[str, Any]:
    """Rotate tokens with their heads in one row, and apart: of which is the outcome the same?

    Raises:
        NotBuiltError: This engine's kernel is not a CPU's.
    """
    import torch
    from vllm import _custom_ops
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        raise NotBuiltError("this engine does not rotate on a CPU")
    angles = torch.arange(64).float()[:, None] / torch.arange(1, _SIZE // 2 + 1)
    cache = torch.cat([angles.cos(), angles.sin()], dim=-1)
    positions = torch.arange(3, 3 + _TOKENS)
    whole = torch.arange(1, 1 + _TOKENS * _HEADS * _SIZE).float().view(_TOKENS, -1)
    apart = whole.clone().view(_TOKENS, _HEADS, _SIZE)
    for query in (whole, apart):
        _custom_ops.rotary_embedding(positions, query, query.clone(), _SIZE, cache, True)
    right = whole.view_as(apart)
    return {"tokens_turned": [bool(torch.equal(*pair)) for pair in zip(apart, right, strict=True)]}
