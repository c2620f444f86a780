"""The block table of a real batch of requests, as they leave it."""

from collections.abc import Iterable
from typing import Any, Final

from hybridwatch_engine_lab.exercise.fitting import call_with_known
from hybridwatch_engine_lab.exercise.runner import dummy_run, stand_in

_REQUESTS: Final = ("a", "b", "c")
_MOST_TOKENS: Final = 32


def rows_after_leaving() -> dict[str, Any]:
    """Three requests finish, and a dummy run of four rows reads the table."""
    batch = batch_of(_REQUESTS)
    for request in _REQUESTS:
        batch.remove_request(request)
    table = batch.block_table[0]
    table.add_row([9], len(_REQUESTS))
    read: list[list[int]] = []

    def build(**_: Any) -> None:
        read.extend(_rows(table.get_device_tensor(4)))

    dummy_run(stand_in(input_batch=batch), build)
    return {"host": _rows(table.get_numpy_array()[:4]), "device": read}


def rows_after_moving() -> dict[str, Any]:
    """The first of three requests finishes, and the last moves into its row."""
    batch = batch_of(_REQUESTS)
    batch.remove_request(_REQUESTS[0])
    batch.condense()
    return {"host": _rows(batch.block_table[0].get_numpy_array()[: len(_REQUESTS)])}


def batch_of(requests: Iterable[str]) -> Any:
    """A batch of requests of two blocks each, (10, 20) and so on, committed to the device."""
    import torch
    from vllm.v1.worker.gpu_input_batch import InputBatch

    batch = call_with_known(
        InputBatch,
        max_num_reqs=8,
        max_model_len=_MOST_TOKENS,
        max_num_batched_tokens=_MOST_TOKENS,
        device=torch.device("cpu"),
        pin_memory=False,
        vocab_size=16,
        block_sizes=[16],
        kernel_block_sizes=[16],
        max_num_blocks_per_req=[2],
    )
    for number, request in enumerate(requests):
        batch.add_request(build_request(request, [10 + number, 20 + number]))
    batch.refresh_metadata()
    batch.block_table.commit_block_table(len(batch.req_ids))
    return batch


def build_request(name: str, blocks: list[int]) -> Any:
    """A request whose prompt of three tokens is computed."""
    from vllm import SamplingParams
    from vllm.v1.worker.gpu_input_batch import CachedRequestState

    return CachedRequestState(
        req_id=name,
        prompt_token_ids=[1, 2, 3],
        mm_features=[],
        sampling_params=SamplingParams(temperature=0.0),
        generator=None,
        block_ids=(blocks,),
        num_computed_tokens=3,
        output_token_ids=[],
    )


def _rows(table: Any) -> list[list[int]]:
    rows: list[list[int]] = table[:, :2].tolist()
    return rows
