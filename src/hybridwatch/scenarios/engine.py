"""The tables of a scenario that say how the engine is started and how it speculates."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import Field

from hybridwatch.scenarios.pattern import MAX_RANKS
from hybridwatch.scenarios.validation import (
    Concurrency,
    Contradiction,
    Count,
    Part,
    Tokens,
    quoted,
)

_OF_PARTS: Final = frozenset({"PIECEWISE", "FULL_AND_PIECEWISE"})
"""Graph modes with graphs of a model's parts, which only a compiled model has."""


_StateType = Literal["float32", "float16", "bfloat16"]


class Speculation(Part):
    """Which tokens are proposed to the engine ahead of time (vLLM's ``speculative_config``).

    ``method`` is ``ngram`` (what followed the last tokens earlier in the text), ``mtp`` (layers of
    the target for it), ``eagle`` (a head on its hidden states) or ``draft_model``.
    """

    method: Literal["ngram", "mtp", "eagle", "draft_model"]
    drafts: Annotated[int, Field(ge=1, le=16)]
    model: Annotated[str, Field(pattern=r"\S")] | None = None
    lookup_min: Annotated[int, Field(ge=1, le=64)] | None = None
    lookup_max: Annotated[int, Field(ge=1, le=64)] | None = None

    def _contradictions(self) -> Iterator[Contradiction]:
        method = quoted(self.method)
        alone = self.method in {"ngram", "mtp"}
        if alone and self.model is not None:
            found = f"found {quoted(self.model)}"
            yield "model", f"expected none with method {method}, {found}"
        if not alone and self.model is None:
            yield "model", f"missing; method {method} needs it"
        if self.method == "ngram":
            low, high = self.lookup_min, self.lookup_max
            if low is not None and high is not None and low > high:
                yield "lookup_min", f"expected at most lookup_max ({high}), found {low}"
            return
        for key in ("lookup_min", "lookup_max"):
            value = getattr(self, key)
            if value is not None:
                yield key, f'expected only with method "ngram", found {value}'


class EngineArgs(Part):
    """How the engine is started, in vLLM's own words; None leaves a key to the engine.

    ``scenarios/README.md`` says what more keys mean.

    Attributes:
        cudagraph_mode: Which batches replay a graph (``vllm.config.CUDAGraphMode``).
        cudagraph_capture_sizes: Batch sizes with a graph, ascending; empty with mode ``NONE``.
        mamba_cache_mode: Which Mamba states the prefix cache keeps.
        mamba_block_size: Tokens of a block of the Mamba layers' cache, a multiple of 8.
        prefix_match_unit: A prefix is found at multiples of so many tokens, also within a block.
        enable_mamba_shared_prefix_checkpoint: With a draft head, whether a state is kept where two
            prompts part, not at the ends of prompts alone.
        conv_state_layout: Which axis of a convolution's state comes first: ``SD`` for its inputs,
            ``DS`` for its channels (``VLLM_SSM_CONV_STATE_LAYOUT``).
        use_replayssm: Whether Mamba2 layers buffer the inputs of recent tokens and store the
            recurrent state when the buffer is full, not in each step (ReplaySSM, vllm#48018).
        replayssm_buffer_len: Tokens whose inputs are kept; the release's own 16 if None.
        data_parallel_size: Ranks that have requests of their own and step together.
        disaggregated: Whether two engines share the work, one for prompts and one for answers.
    """

    dtype: Literal["float32", "bfloat16", "float16"]
    load_format: Literal["dummy"] | None = None
    max_model_len: Tokens
    max_num_seqs: Concurrency
    cudagraph_mode: Literal["NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"]
    # Not strict outside: TOML has lists where we want a tuple. The numbers inside stay strict.
    cudagraph_capture_sizes: tuple[Concurrency, ...] = Field(strict=False)
    compilation_mode: Literal[3] | None = None
    max_num_batched_tokens: Tokens | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    enable_prefix_caching: bool | None = None
    mamba_cache_mode: Literal["none", "align", "all"] | None = None
    mamba_cache_dtype: _StateType | None = None
    mamba_ssm_cache_dtype: _StateType | None = None
    kv_cache_dtype: Literal["bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = None
    prefix_cache_retention_interval: Annotated[int, Field(ge=0)] | None = None
    mamba_block_size: Annotated[int, Field(ge=8, multiple_of=8)] | None = None
    prefix_match_unit: Tokens | None = None
    enable_mamba_shared_prefix_checkpoint: bool | None = None
    conv_state_layout: Literal["SD", "DS"] | None = None
    use_replayssm: bool | None = None
    replayssm_buffer_len: Tokens | None = None
    num_gpu_blocks_override: Count | None = None
    block_size: Tokens | None = None
    async_scheduling: bool | None = None
    lora_modules: tuple[Annotated[str, Field(pattern=r"^[\w.-]+$")], ...] = Field(
        default=(), strict=False
    )
    max_loras: Count | None = None
    max_lora_rank: Literal[1, 8, 16, 32, 64, 128, 256, 320, 512] | None = None
    data_parallel_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] = 1
    tensor_parallel_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = None
    pipeline_parallel_size: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = None
    disaggregated: bool = False
    kv_connector: Literal["empty", "keeping", "offloading"] | None = None
    speculation: Speculation | None = None
    model_runner: Literal["v1", "v2"] | None = None

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return self.pipeline_parallel_size or 1

    @property
    def workers(self) -> int:
        """Processes that compute one request together; on GPUs each takes one."""
        return (self.tensor_parallel_size or 1) * self.stages


def contradictions_of_graphs(engine: EngineArgs) -> Iterator[Contradiction]:
    """Yield each broken rule of the graphs as the key at fault and what is wrong with it."""
    sizes, key = engine.cudagraph_capture_sizes, "engine.cudagraph_capture_sizes"
    if any(first >= second for first, second in pairwise(sizes)):
        yield key, f"expected ascending sizes, each once, found {quoted(sizes)}"
    if bool(sizes) == (engine.cudagraph_mode == "NONE"):
        expected = "no size" if sizes else "at least one size"
        mode = f"cudagraph_mode {engine.cudagraph_mode}"
        yield key, f"expected {expected} with {mode}, found {quoted(sizes)}"
    if engine.cudagraph_mode in _OF_PARTS and engine.compilation_mode is None:
        expected = f"expected 3 with cudagraph_mode {engine.cudagraph_mode}"
        yield "engine.compilation_mode", f"missing; {expected}"


def contradictions_of_workers(engine: EngineArgs) -> Iterator[Contradiction]:
    """Yield what an engine cannot be when several workers compute a request together."""
    for key in ("tensor_parallel_size", "pipeline_parallel_size"):
        size, several = getattr(engine, key) or 1, engine.data_parallel_size
        if size > 1 and several > 1:
            yield f"engine.{key}", f"expected 1 with data_parallel_size {several}, found {size}"
        if size > 1 and engine.disaggregated:
            yield f"engine.{key}", f"expected 1 with disaggregated = true, found {size}"


def contradictions_of_adapters(engine: EngineArgs) -> Iterator[Contradiction]:
    """Yield each key of adapters that an engine without any has."""
    for key in ("max_loras", "max_lora_rank"):
        if not engine.lora_modules and (found := getattr(engine, key)) is not None:
            yield f"engine.{key}", f"expected only with lora_modules, found {found}"


def contradictions_of_replayssm(engine: EngineArgs) -> Iterator[Contradiction]:
    """Yield what vLLM refuses next to ReplaySSM on its Triton kernels (``vllm/config/vllm.py``)."""
    if not engine.use_replayssm:
        if engine.replayssm_buffer_len is not None:
            found = engine.replayssm_buffer_len
            yield (
                "engine.replayssm_buffer_len",
                f"expected only with use_replayssm = true, found {found}",
            )
        return
    refused = {
        'model_runner = "v2"': engine.model_runner == "v2",
        'mamba_cache_mode = "all"': engine.mamba_cache_mode == "all",
        "speculation": engine.speculation is not None,
        "disaggregated = true": engine.disaggregated,
        "kv_connector": engine.kv_connector is not None,
    }
    for other in (name for name, is_set in refused.items() if is_set):
        yield "engine.use_replayssm", f"expected none with engine.{other}, found true"
