"""The longest sequence that metadata of model runner V2 speak of, for a target and for a draft."""

from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

from hybridwatch_engine.model_runner import draft_build

from hybridwatch_engine_lab.exercise.fitting import call_with_known
from hybridwatch_engine_lab.exercise.runner import Recorder

_MAX_MODEL_LEN: Final = 4096
_STEPS: Final = 3


class _SeenEnoughLengthsError(Exception):
    """Ends a proposal before it gets to the draft model."""


def longest_of_target() -> dict[str, int]:
    """Two requests of a hybrid target, in a step and while a graph is captured."""
    return {
        "step": _longest_of_target(for_capture=False),
        "capture": _longest_of_target(for_capture=True),
    }


def longest_of_draft() -> dict[str, int]:
    """Drafts behind two requests: far from the end of what the engine takes, and at it."""
    return {
        "short": _longest_of_draft((30, 50)),
        "at_the_end": _longest_of_draft((30, _MAX_MODEL_LEN - 1)),
    }


def _longest_of_target(*, for_capture: bool) -> int:
    import torch
    from vllm.config import CUDAGraphMode
    from vllm.v1.worker.gpu.model_states.mamba_hybrid import MambaHybridModelState

    recorder = Recorder()
    state = MagicMock(
        max_model_len=_MAX_MODEL_LEN,
        num_accepted_tokens_gpu=torch.ones(2, dtype=torch.int32),
        _align_mode=False,
        recoverssm=None,
    )
    state.vllm_config.num_speculative_tokens = 0
    MambaHybridModelState.prepare_attn(
        state,
        _batch((30, 50)),
        CUDAGraphMode.FULL,
        (_blocks(),),
        torch.zeros((1, 2), dtype=torch.int64),
        [[recorder]],
        SimpleNamespace(kv_cache_groups=[MagicMock()]),
        for_capture=for_capture,
    )
    return int(recorder.received[-1].max_seq_len)


def _longest_of_draft(lengths: Sequence[int]) -> int:
    from vllm.v1.worker.gpu.spec_decode.eagle.speculator import EagleSpeculator

    recorder = Recorder()
    speculator = _speculator(recorder)

    def build_and_leave(*_: Any, **__: Any) -> None:
        _build(speculator, lengths)
        raise _SeenEnoughLengthsError

    # The first thing that a proposal does when it knows its batch, before and from 0.32.0 on.
    speculator.hidden_states.__getitem__.side_effect = build_and_leave
    speculator._copy_request_inputs = build_and_leave  # noqa: SLF001 - the engine's own
    with suppress(_SeenEnoughLengthsError):
        EagleSpeculator.propose(speculator, _batch(lengths), *[None] * 10)
    return int(recorder.received[-1].max_seq_len)


def _build(speculator: Any, lengths: Sequence[int]) -> None:
    """Build the metadata of a draft, by the release's own function."""
    import numpy as np
    import torch
    from vllm.config import CUDAGraphMode

    owner, name = draft_build()
    call_with_known(
        getattr(owner, name).__get__(speculator, owner),
        num_reqs=2,
        num_reqs_padded=2,
        num_tokens_padded=2,
        batch_desc=SimpleNamespace(num_reqs=2, num_tokens=2, cg_mode=CUDAGraphMode.NONE),
        query_start_loc_np=np.arange(3, dtype=np.int32),
        seq_lens_cpu_upper_bound=torch.tensor(lengths, dtype=torch.int32),
        step=1,
    )


def _speculator(recorder: Recorder) -> Any:
    """A speculator that has what a draft's metadata are made of, in any release."""
    import torch

    speculator = MagicMock(
        arange=torch.arange(3, dtype=torch.int32),
        attn_groups=[[recorder]],
        dcp_size=1,
        draft_is_prefilling=torch.zeros(2, dtype=torch.bool),
        max_model_len=_MAX_MODEL_LEN,
        num_speculative_steps=_STEPS,
    )
    speculator.block_tables.cp_size = 1
    speculator.block_tables.input_block_tables = [_blocks()]
    speculator.block_tables.slot_mappings = torch.zeros((1, 2), dtype=torch.int64)
    speculator.input_buffers.query_start_loc = torch.arange(3, dtype=torch.int32)
    speculator.input_buffers.seq_lens = torch.ones(2, dtype=torch.int32)
    speculator.kv_cache_config.kv_cache_groups = [MagicMock()]
    return speculator


def _batch(lengths: Sequence[int]) -> Any:
    """A batch of runner V2 in which each request computes one token."""
    import numpy as np
    import torch

    rows = len(lengths)
    starts = np.arange(rows + 1, dtype=np.int32)
    return MagicMock(
        num_reqs=rows,
        num_reqs_after_padding=rows,
        num_tokens=rows,
        num_tokens_after_padding=rows,
        num_scheduled_tokens=np.ones(rows, dtype=np.int32),
        max_query_len=1,
        query_start_loc=torch.from_numpy(starts),
        query_start_loc_np=starts,
        seq_lens=torch.tensor(lengths, dtype=torch.int32),
        seq_lens_cpu_upper_bound=torch.tensor(lengths, dtype=torch.int32),
        is_prefilling_np=np.zeros(rows, dtype=bool),
        prefill_runs_as_decode_np=None,
        idx_mapping=torch.arange(rows),
        num_draft_tokens_per_req=None,
        dcp_local_seq_lens=None,
        prompt_lens=None,
    )


def _blocks() -> Any:
    import torch

    return torch.zeros((2, 2), dtype=torch.int32)
