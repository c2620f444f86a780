"""vLLM's two model runners, and where each keeps what we ask of both.

V1 (``v1/worker/gpu_model_runner.py``) has one batch, whose rows outlive their requests. V2
(``v1/worker/gpu/model_runner.py``) keeps a state for each request and lays out every batch again.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Final

Function = tuple[Any, str]
"""A function of the engine: its class, and its name there."""

_STATES: Final = "vllm.v1.worker.gpu.model_states"
_DRAFTS: Final = "vllm.v1.worker.gpu.spec_decode"


def is_v2(runner: Any) -> bool:
    """Which of the two a model runner is."""
    return hasattr(runner, "req_states")


def requests_in(runner: Any) -> int:
    """How many requests a runner holds; finished ones leave with the next step."""
    return int(runner.req_states.num_reqs if is_v2(runner) else runner.input_batch.num_reqs)


def block_size(runner: Any, group: int) -> int:
    """Tokens of a block as a runner's table of a cache group numbers them.

    V1 cuts the scheduler's blocks into those that attention takes.
    """
    if is_v2(runner):
        return int(runner.block_tables.block_sizes[group])
    return int(runner.input_batch.block_table[group].block_size)


def decode_length(runner: Any) -> int:
    """Tokens of a request in a batch of decodes: one, and with speculation its drafts."""
    return int(runner.decode_query_len if is_v2(runner) else runner.uniform_decode_query_len)


def clear_rows(runner: Any) -> None:
    """Forget what finished requests have left behind; only for a runner without requests."""
    if is_v2(runner):
        # Read by dummy runs; what belongs to a request is written again when one comes.
        for table in runner.block_tables.input_block_tables:
            table.zero_()
        return
    batch = runner.input_batch
    batch.num_computed_tokens_cpu_tensor.zero_()
    batch.num_prompt_tokens_cpu_tensor.zero_()
    for table in batch.block_table.block_tables:
        table.block_table.cpu.zero_()
        table.block_table.gpu.zero_()
        table.num_blocks_per_row.fill(0)


def clear_cache(runner: Any) -> None:
    """Fill all states, keys and values with zeros, as they are when an engine comes up."""
    for held in runner.kv_caches:
        for tensor in held if isinstance(held, list | tuple) else (held,):
            tensor.zero_()


def worker_class() -> Any:
    """The class of this engine's worker; a CPU's cannot even be imported elsewhere."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        from vllm.v1.worker.cpu_worker import CPUWorker

        return CPUWorker
    from vllm.v1.worker.gpu_worker import Worker

    return Worker


def steps() -> tuple[Function, ...]:
    """What runs a step, in either runner."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner as RunnerV2
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner as RunnerV1

    return (RunnerV1, "execute_model"), (RunnerV2, "execute_model")


def is_step(scheduled: Any, named: Mapping[str, Any]) -> bool:
    """Whether a call of what runs a step has work to do.

    Args:
        scheduled: The scheduler's output.
        named: Keyword arguments; in V2 one of them marks a dummy run, V1 makes them otherwise.
    """
    return scheduled.total_num_scheduled_tokens > 0 and not named.get("dummy_run", False)


def work_of_steps() -> tuple[Function, ...]:
    """All that a step asks of either runner, one without requests too.

    Some of them call one another.
    """
    names = "execute_model", "sample_tokens", "_dummy_run"
    return tuple((runner, name) for runner, _ in steps() for name in names)


def phases_of_steps() -> dict[str, tuple[Function, ...]]:
    """What a step of either runner is made of, by phase; what a release does not have is left out.

    V2 runs the model in ``execute_model`` itself, by no function of its own.
    """
    (v1, _), (v2, _) = steps()
    named = {
        "prepare": (
            *((v1, name) for name in ("_update_states", "_prepare_inputs", "_preprocess")),
            *((v2, name) for name in ("add_requests", "update_requests", "prepare_inputs")),
            (v2, "prepare_attn"),
        ),
        "forward": ((v1, "_model_forward"),),
        "sample": (
            *((v1, name) for name in ("_sample", "_bookkeeping_sync")),
            *((v2, name) for name in ("sample", "postprocess_sampled", "postprocess")),
        ),
        "draft": ((v1, "propose_draft_token_ids"),),
    }
    found = {
        phase: tuple(function for function in functions if hasattr(*function))
        for phase, functions in named.items()
    }
    return {**found, "metadata": metadata_builds()}


def metadata_builds() -> tuple[Function, ...]:
    """What builds attention metadata, in either runner, for targets and drafts."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner as RunnerV1

    return (RunnerV1, "_build_attention_metadata"), *target_builds(), draft_build()


def target_builds() -> tuple[Function, ...]:
    """What builds a target's metadata in runner V2: for plain models and for hybrid ones."""
    return (
        (importlib.import_module(f"{_STATES}.default").DefaultModelState, "prepare_attn"),
        (importlib.import_module(f"{_STATES}.mamba_hybrid").MambaHybridModelState, "prepare_attn"),
    )


def draft_build() -> Function:
    """What builds a draft's metadata in runner V2, by its name in this release.

    Raises:
        AttributeError: This release calls it something that is not known here.
    """
    try:
        owner = importlib.import_module(f"{_DRAFTS}.speculator").DraftModelSpeculator
    except ModuleNotFoundError:  # before 0.23.0
        owner = importlib.import_module(f"{_DRAFTS}.eagle.speculator").EagleSpeculator
    for name in ("_build_attn_metadata", "_build_draft_attn_metadata"):  # from 0.30.0 on, before
        if hasattr(owner, name):
            return owner, name
    raise AttributeError(f"{owner.__name__} does not build a draft's metadata by a known name")
