"""A stand-in for the model runner, and what its real functions do with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

from hybridwatch_engine_lab.exercise.trial import call_with_known

_COMPUTED: Final = (50, 100, 200, 10, 20)
_PROMPTS: Final = (50, 200, 200, 100, 200)
_MOST_ROWS: Final = 8
_DISPATCH: Final = "_determine_batch_execution_and_padding"
_PLAIN: Final[Mapping[str, Any]] = {
    "uniform_decode_query_len": 1,
    "max_num_tokens": _MOST_ROWS,
    "scheduler_config.max_num_seqs": _MOST_ROWS,
    "dcp_world_size": 1,
    "speculative_config": None,
    "is_mm_prefix_lm": False,
    "use_async_spec_decode": False,
    "routed_experts_initialized": False,
    "model_config.is_encoder_decoder": False,
    "model_config.rswa_window": None,
    "cache_config.use_replayssm": False,
    "cache_config.kv_sharing_fast_prefill": False,
    "compilation_config.pass_config.enable_sp": False,
    "vllm_config.model_config.multimodal_config": None,
    "vllm_config.parallel_config.data_parallel_size": 1,
    "vllm_config.observability_config.cudagraph_metrics": False,
}
"""A runner without any feature that would ask for more; a mock says yes to all of them."""


class _SeenEnoughError(Exception):
    """Ends a dummy run before it gets to the model."""


class Recorder:
    """Attention group and metadata builder in one; keeps what it is to make metadata from."""

    layer_names = ()
    supports_update_block_table = False

    def __init__(self) -> None:
        self.received: list[Any] = []

    def get_metadata_builder(self, _ubatch: int = 0) -> "Recorder":
        """The builder of the group."""
        return self

    def build(self, common_attn_metadata: Any, **_: Any) -> None:
        """Take note, as a builder."""
        self.received.append(common_attn_metadata)

    def build_metadata(self, common_attn_metadata: Any, _ubatch: int = 0, **_: Any) -> None:
        """Take note, as a group."""
        self.received.append(common_attn_metadata)

    build_for_cudagraph_capture = build
    build_metadata_for_cudagraph_capture = build_metadata

    def flags(self) -> list[bool]:
        """The prefilling flags of the batch received last."""
        flags: list[bool] = self.received[-1].is_prefilling.tolist()
        return flags


def flags_of_padded_rows() -> dict[str, Any]:
    """Three real rows padded to five, where two requests ended in their prompts before."""
    recorder = Recorder()
    runner = stand_in(attn_groups=[[recorder]])
    real(runner, "_build_attention_metadata")(
        num_tokens=3,
        num_reqs=3,
        max_query_len=1,
        num_tokens_padded=5,
        num_reqs_padded=5,
        slot_mappings=_slots(5),
    )
    return {"flags": recorder.flags()}


def flags_in_dummy_runs() -> dict[str, Any]:
    """A dummy run of four rows, replayed and captured, over requests that have left."""
    return {
        "replay": _flags_of_dummy_run(is_graph_capturing=False),
        "capture": _flags_of_dummy_run(is_graph_capturing=True),
    }


def graphs_of_batches() -> dict[str, Any]:
    """Two batches of two one-token rows: one holds the first token of a prompt, one does not."""
    return {"first_token": _find_graph((5, 0)), "decodes": _find_graph((5, 7))}


def state_copied_in_a_step_that_loads() -> dict[str, Any]:
    """When the states of a step are copied, whose connector loads right before the model runs."""
    from vllm.v1.worker import mamba_utils

    now, seen = ["before"], list[str]()

    class Copies:
        """Copies that are due; their count is read before they are made."""

        @property
        def offset(self) -> int:
            seen.append(now[0])
            return 0

    mamba_utils.do_mamba_copy_block(Copies())
    now[0] = "loaded"
    real(MagicMock(), "_model_forward")()
    return {"copied": seen}


def dummy_run(runner: Any, build: Callable[..., Any], *, is_graph_capturing: bool = False) -> None:
    """Let a stand-in go through a dummy run of four rows until its metadata is built."""

    def build_and_leave(**arguments: Any) -> None:
        build(**arguments)
        raise _SeenEnoughError

    runner.configure_mock(
        _build_attention_metadata=build_and_leave,
        _determine_batch_execution_and_padding=real(runner, _DISPATCH),
        _get_slot_mappings=lambda num_tokens_padded, **_: (_slots(num_tokens_padded), None),
        _get_cumsum_and_arange=lambda lengths, *_: lengths.cumsum(),
    )
    with suppress(_SeenEnoughError):
        real(runner, "_dummy_run")(4, uniform_decode=True, is_graph_capturing=is_graph_capturing)


def stand_in(**differing: Any) -> Any:
    """A runner that has whatever the engine's functions ask for.

    What they read differs from release to release, and most of it makes no difference here.
    """
    import torch

    starts = torch.arange(_MOST_ROWS + 1, dtype=torch.int32)
    runner = MagicMock(
        attn_groups=[[]],
        optimistic_seq_lens_cpu=torch.ones(_MOST_ROWS, dtype=torch.int32),
        positions=torch.zeros(_MOST_ROWS, dtype=torch.int64),
        query_start_loc=MagicMock(gpu=starts, cpu=starts, np=starts.numpy()),
        seq_lens=torch.ones(_MOST_ROWS, dtype=torch.int32),
        _get_encoder_seq_lens=lambda *_, **__: (None, None),
        _pad_for_sequence_parallelism=lambda tokens: tokens,
    )
    runner.configure_mock(**_PLAIN)
    runner.configure_mock(_is_uniform_decode=real(runner, "_is_uniform_decode"))
    runner.configure_mock(**{"input_batch": _batch(), **differing})
    runner.cudagraph_dispatcher.dispatch = _dispatch
    runner.kv_cache_config.kv_cache_groups = [MagicMock()]
    return runner


def real(runner: Any, name: str) -> Callable[..., Any]:
    """The engine's function of this name as it is now, bound to a stand-in."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    bound: Callable[..., Any] = vars(GPUModelRunner)[name].__get__(runner, GPUModelRunner)
    return bound


def _flags_of_dummy_run(*, is_graph_capturing: bool) -> list[bool]:
    recorder = Recorder()
    runner = stand_in(attn_groups=[[recorder]])
    build = real(runner, "_build_attention_metadata")
    dummy_run(runner, build, is_graph_capturing=is_graph_capturing)
    return recorder.flags()


def _find_graph(computed: Sequence[int]) -> str:
    import numpy as np

    runner = stand_in()
    runner.input_batch.num_computed_tokens_cpu = np.array(computed)
    mode, *_ = real(runner, _DISPATCH)(
        num_tokens=len(computed),
        num_reqs=len(computed),
        num_scheduled_tokens_np=np.ones(len(computed), dtype=np.int32),
        max_num_scheduled_tokens=1,
        use_cascade_attn=False,
    )
    return str(mode.name)


def _batch() -> Any:
    """Rows of requests, some of which are in their prompts; their blocks do not matter."""
    import torch

    batch = MagicMock(
        num_computed_tokens_cpu_tensor=torch.tensor(_COMPUTED, dtype=torch.int32),
        num_prompt_tokens_cpu_tensor=torch.tensor(_PROMPTS, dtype=torch.int32),
    )
    table = batch.block_table.__getitem__.return_value
    table.get_device_tensor = lambda rows: torch.zeros((rows, 2), dtype=torch.int32)
    return batch


def _dispatch(num_tokens: int, *, uniform_decode: bool, **_: Any) -> tuple[Any, Any]:
    """A FULL graph for every uniform decode batch, whatever its size."""
    from vllm.config import CUDAGraphMode

    mode = CUDAGraphMode.FULL if uniform_decode else CUDAGraphMode.PIECEWISE
    return mode, SimpleNamespace(num_tokens=num_tokens, num_reqs=num_tokens)


def _slots(tokens: int) -> dict[int, Any]:
    import torch

    return {0: torch.zeros(tokens, dtype=torch.int64)}


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


_ROWS: Final = 2
_OWN_GROUP: Final = 1


def blocks_of_draft_model() -> dict[str, Any]:
    """Block table and slots that a draft model gets whose layers are in the second group.

    Two rows padded to three; the hundreds name the group.
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
