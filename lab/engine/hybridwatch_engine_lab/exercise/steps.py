"""Steps of a speculating engine: their inputs from the step before, and what they leave."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

from hybridwatch_engine_lab.exercise.builder import DRAFTS, LAYER, build_spec, make_builder
from hybridwatch_engine_lab.exercise.runner import real, stand_in

_COLUMNS: Final = 18
_INPUTS: Final = 2
"""Inputs that the convolution looks back on."""


class _StepGroup:
    """The attention group of a builder, in any release."""

    layer_names = (LAYER,)

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def get_metadata_builder(self, _ubatch: int = 0) -> Any:
        """The builder of the group."""
        return self._builder

    def build_metadata(self, common_attn_metadata: Any, _ubatch: int = 0, **others: Any) -> Any:
        """Metadata of the group."""
        return self._builder.build(0, common_attn_metadata, **others)


def accepted_without_drafts() -> dict[str, Any]:
    """Accepted tokens of two requests that a step without drafts gets."""
    metadata = _build(_runner("none", [30, 50], tokens=1), 2, tokens=1, drafted=False)
    return {"accepted": _listed(metadata.num_accepted_tokens)}


def anchors_without_drafts() -> dict[str, Any]:
    """Blocks remembered after a step in which one request has fewer drafts than usual.

    And what a step without drafts gets of two requests.
    """
    runner = _runner("all", [30, 50], tokens=1)
    metadata = _build(runner, 2, tokens=1, drafted=False)
    return {
        "remembered": _remembered(),
        "accepted": _listed(metadata.num_accepted_tokens),
        "anchors": _listed(metadata.block_idx_last_scheduled_token_prev_step),
    }


def states_at_block_ends() -> dict[str, Any]:
    """Whose states four requests have in their columns after a step of three tokens.

    The first fills its block 1 with the second token and has begun in block 2. The second fills
    the block 1 in which it has begun. The last token of the third would fill one, and is rejected.
    The fourth begins behind a full block.

    Returns:
        By request: for each of the first columns, the one whose state it holds; the inputs of the
        convolution in block 1, as ten times their column and their place in it; and the number of
        tokens that the next step takes for accepted.
    """
    import torch

    runner = _runner("all", [33, 32, 32, 35], tokens=1 + DRAFTS)
    states, windows = _cache(runner, slots=3 + 4 * _COLUMNS)
    _build(runner, 4, tokens=1 + DRAFTS, drafted=True)
    tokens = torch.tensor([[5, 5, 5], [5, 5, 5], [5, 5, -1], [5, 5, 5]])
    scheduled = MagicMock(num_scheduled_tokens={})
    real(runner, "_update_states_after_model_execute")(tokens, scheduled)
    first = torch.arange(4).unsqueeze(1) * _COLUMNS + 3
    block = windows[first[:, 0] + 1, :_INPUTS, 0]
    return {
        "states": (states[first + torch.arange(5), 0] - first).tolist(),
        "inputs": (block - 10 * first).tolist(),
        "accepted": runner.num_accepted_tokens.gpu.tolist(),
        "accepted_on_host": runner.input_batch.num_accepted_tokens_cpu_tensor.tolist(),
    }


def _runner(mode: str, lengths: Sequence[int], *, tokens: int) -> Any:
    """A runner with decodes of so many tokens in all; their blocks are 3, 4, and so on."""
    import torch

    rows = len(lengths)
    seq_lens = torch.tensor(lengths, dtype=torch.int32)
    starts = torch.arange(rows + 1, dtype=torch.int32) * tokens
    blocks = torch.arange(3, 3 + rows * _COLUMNS, dtype=torch.int32).reshape(rows, _COLUMNS)
    accepted = torch.tensor([2, *[1] * (rows - 1)], dtype=torch.int32)
    batch = MagicMock(
        num_accepted_tokens_cpu_tensor=accepted.clone(),
        num_computed_tokens_cpu_tensor=seq_lens - tokens,
        num_prompt_tokens_cpu_tensor=torch.ones(rows, dtype=torch.int32),
        req_ids=[],
    )
    table = batch.block_table.__getitem__.return_value
    table.get_device_tensor = lambda count: blocks[:count]
    runner = stand_in(
        attn_groups=[[_StepGroup(make_builder(mode, DRAFTS, mamba2=True))]],
        input_batch=batch,
        mamba_prev_last_scheduled_idx=SimpleNamespace(gpu=torch.arange(2, 2 + rows)),
        mamba_state_idx={},
        num_accepted_tokens=SimpleNamespace(gpu=accepted),
        num_decode_draft_tokens=SimpleNamespace(cpu=torch.full((rows,), tokens - 1)),
        num_spec_tokens=DRAFTS,
        optimistic_seq_lens_cpu=seq_lens,
        query_start_loc=MagicMock(gpu=starts, cpu=starts, np=starts.numpy()),
        seq_lens=seq_lens,
        speculative_config=MagicMock(),
        use_async_scheduling=False,
    )
    runner.cache_config.mamba_cache_mode = mode
    runner.kv_cache_config = _groups(mode)
    return runner


def _build(runner: Any, rows: int, *, tokens: int, drafted: bool) -> Any:
    """The metadata of the Mamba layer in a step."""
    import torch

    metadata, _ = real(runner, "_build_attention_metadata")(
        num_tokens=rows * tokens,
        num_reqs=rows,
        max_query_len=tokens,
        slot_mappings={0: torch.zeros(rows * tokens, dtype=torch.int64)},
        use_spec_decode=drafted,
    )
    return metadata[LAYER]


def _remembered() -> dict[str, int]:
    """What is remembered after two requests have computed two and three tokens."""
    from vllm.v1.worker import mamba_utils

    blocks = {"short": 1}
    mamba_utils.postprocess_mamba_all(
        SimpleNamespace(num_scheduled_tokens={"short": 2, "full": 3}),
        _groups("all"),
        SimpleNamespace(req_ids=["short", "full"]),
        {name: SimpleNamespace(num_computed_tokens=46) for name in ("short", "full")},
        blocks,
        DRAFTS,
        2,
    )
    return blocks


def _cache(runner: Any, slots: int) -> tuple[Any, Any]:
    """Give a runner a cache in which each slot holds its own number.

    Returns:
        States, shape (slots, 1), and inputs of the convolution, shape (slots, inputs, 1).
    """
    import torch
    from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first

    states = torch.arange(slots).unsqueeze(1)
    windows = (10 * states + torch.arange(_INPUTS + DRAFTS)).unsqueeze(2)
    stored = windows.transpose(1, 2) if is_conv_state_dim_first() else windows
    layer = SimpleNamespace(kv_cache=(stored, states))
    runner.compilation_config.static_forward_context = {LAYER: layer}
    return states, windows


def _groups(mode: str) -> Any:
    """A cache of one group, the Mamba layer's."""
    group = SimpleNamespace(layer_names=[LAYER], kv_cache_spec=build_spec(mode, DRAFTS))
    return SimpleNamespace(kv_cache_groups=[group])


def _listed(values: Any) -> list[int] | None:
    """Values of a tensor that need not be there."""
    return None if values is None else [int(value) for value in values]
