"""The states that the CPU's state update stores behind each token of a step of speculation."""

from typing import Any
from unittest.mock import MagicMock

from hybridwatch_engine_lab.exercise.trial import NotBuiltError

_KERNEL = "selective_state_update_cpu"
_SIZE = 16
"""Channels, and entries of a state; as many as the compiled kernel takes at once."""


def states_behind_tokens() -> dict[str, Any]:
    """States and outputs of a request whose three tokens add one each to a state of zero.

    The state is read from slot 1, where the last accepted token left it; behind the tokens it
    belongs into the slots 1, 2 and 3.

    Raises:
        NotBuiltError: This engine has no compiled kernel for a CPU.
    """
    import torch
    from vllm.model_executor.layers.mamba.ops.ssu_dispatch import CPUSSUBackend

    if not hasattr(torch.ops._C, _KERNEL):  # noqa: SLF001 - where vLLM keeps its kernels
        raise NotBuiltError(f"this engine has no {_KERNEL}")
    states = torch.zeros(4, 1, _SIZE, _SIZE)
    tokens = torch.ones(3, 1, _SIZE)
    out = torch.zeros_like(tokens)
    slots = torch.tensor([[1, 2, 3]], dtype=torch.int32)
    CPUSSUBackend(MagicMock())(
        states,
        tokens,
        torch.ones(3, 1, 1).expand(-1, -1, _SIZE),
        torch.zeros(1, 1, 1).expand(-1, _SIZE, _SIZE),
        tokens / _SIZE,
        tokens,
        torch.zeros(1, 1).expand(-1, _SIZE),
        torch.zeros(1, 1).expand(-1, _SIZE),
        state_batch_indices=slots,
        dst_state_batch_indices=slots,
        out=out,
        num_accepted_tokens=torch.ones(1, dtype=torch.int32),
        cu_seqlens=torch.tensor([0, 3], dtype=torch.int32),
    )
    return {
        "states": (states[1:, 0, 0, 0] * _SIZE).tolist(),
        "outputs": out[:, 0, 0].tolist(),
    }
