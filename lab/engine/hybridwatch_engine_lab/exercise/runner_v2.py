"""Which graph model runner V2 chooses for a batch, and which blocks its rows name."""

from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock, patch

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
    """What a step in which each request computes one token hands on to choose its graph.

    Args:
        computed: Tokens of each prompt, of 9, that are computed.
    """
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
