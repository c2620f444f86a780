"""Model runner V2: which graph it chooses, what its rows name, how long it says they are."""

from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock, patch

from hybridwatch_engine.model_runner import draft_build

from hybridwatch_engine_lab.exercise.runner import Recorder
from hybridwatch_engine_lab.exercise.trial import call_with_known

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


_STALE: Final = 7
"""A block that the batch before had."""


class _SeenEnoughV2Error(Exception):
    """Ends a step when its graph is chosen."""


def uniform_token_counts() -> dict[str, int | None]:
    """Tokens of each request of a batch that a decode graph may be replayed for.

    One has the first token of a prompt beside a decode, the other two decodes.
    """
    return {"first_token": _uniform([0, 9]), "decode": _uniform([9, 9])}


def rows_of_dummy_run() -> dict[str, list[int]]:
    """A dummy run of two rows is given the tables, and three were in use."""
    from vllm.v1.worker.gpu.block_table import BlockTables

    tables = _tables(3)
    BlockTables.get_dummy_block_tables(tables, 2)
    return {"rows": tables.input_block_tables[0][:, 0].tolist()}


def padded_rows() -> dict[str, list[int]]:
    """The tables of one request in a graph of three rows: what the padded ones name."""
    import torch
    from vllm.v1.worker.gpu import block_table

    tables = _tables(3)

    class Kernel:
        """Writes as many rows as it is launched for; those behind the requests are empty."""

        def __getitem__(self, grid: tuple[int, int]) -> Any:
            return lambda *_, **__: tables.input_block_tables[0][1 : grid[1]].zero_()

    with patch.object(block_table, "_gather_block_tables_kernel", Kernel()):
        block_table.BlockTables.gather_block_tables(tables, torch.zeros(1), 3)
    return {"rows": tables.input_block_tables[0][1:, 0].tolist()}


def _tables(rows: int) -> Any:
    import torch

    table = torch.full((rows, 1), _STALE, dtype=torch.int32)
    return MagicMock(num_kv_cache_groups=1, input_block_tables=[table])


def _uniform(computed: Sequence[int]) -> int | None:
    """What a step in which each request computes one token hands on to choose its graph."""
    import numpy as np
    from vllm.v1.worker.gpu import model_runner

    names = [f"request-{row}" for row in range(len(computed))]
    states = SimpleNamespace(
        req_id_to_index={name: row for row, name in enumerate(names)},
        prefill_len=SimpleNamespace(np=np.full(len(computed), 9)),
        num_computed_prefill_tokens=np.array(computed),
    )
    plain = {"lora_config": None, "is_encoder_decoder": False, "use_pp": False}
    absent = {"pcp_manager": None, "adaptive_verification": None, "aux_output_connector": None}
    runner = MagicMock(req_states=states, decode_query_len=1, **plain, **absent)
    kind = model_runner.GPUModelRunner
    if hasattr(kind, "gather_batch_req_state"):  # from 0.28.0 on
        runner.gather_batch_req_state = kind.gather_batch_req_state.__get__(runner)
    output = SimpleNamespace(
        num_scheduled_tokens=dict.fromkeys(names, 1),
        total_num_scheduled_tokens=len(names),
        scheduled_spec_decode_tokens={},
        scheduled_encoder_inputs={},
    )
    seen: list[int | None] = []

    def dispatch(_: Any, __: int, ___: int, uniform: int | None, *____: Any, **_____: Any) -> None:
        seen.append(uniform)
        raise _SeenEnoughV2Error

    with (
        patch.object(model_runner, "dispatch_cg_and_sync_dp", dispatch),
        suppress(_SeenEnoughV2Error),
    ):
        kind.execute_model(runner, output)
    return seen[0]
