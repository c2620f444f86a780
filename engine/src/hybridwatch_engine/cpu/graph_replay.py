"""FULL CUDA graphs, replayed on the CPU.

A captured graph is the kernels in the order of capture, reading the buffers they read at capture.
Whatever the host builds later reaches a replay only by being written into those buffers. So the
logic of a stale-state bug needs no GPU: at capture we keep the arguments and the metadata objects
of the Mamba layers (their tensors are the builder's persistent buffers); at replay the model runs
eagerly with these, on the padded batch, and not with the metadata the host has just built.

Attention layers get fresh metadata: the CPU attention backend has no persistent buffers to replay.
The hooks follow vLLM's own GPU path (``v1/worker/gpu_model_runner.py``, ``compilation/
cuda_graph.py``) and model runner V1 only; ``graph_replay_v2`` does the same for V2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.replays import REPLAYS, recurrent_layers
from hybridwatch_engine.start_times import phase


@dataclass(slots=True)
class CapturedGraph:
    """What a graph of one batch descriptor holds.

    Attributes:
        args: Positional arguments of the model at capture: views of persistent buffers.
        kwargs: Keyword arguments, likewise.
        recurrent_metadata: Layer name to the metadata object in force at capture; its tensors are
            the builder's persistent buffers.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    recurrent_metadata: dict[str, Any]


@cache
def replayed_model_class() -> Any:
    """The class that stands in for vLLM's ``CUDAGraphWrapper``; made late, it needs vLLM."""
    from vllm.compilation.cuda_graph import CUDAGraphWrapper
    from vllm.compilation.monitor import validate_cudagraph_capturing_enabled
    from vllm.forward_context import get_forward_context, override_forward_context

    class ReplayedModel(CUDAGraphWrapper):  # type: ignore[misc]
        """Captures on first sight of a batch descriptor while capturing is on, replays after.

        A subclass only so that the engine, which asks for the type, unwraps it; the base class's
        constructor wants a GPU's graph pool and is not called.
        """

        def __init__(self, runnable: Any, runtime_mode: Any) -> None:
            self.runnable = runnable
            self.runtime_mode = runtime_mode
            self.concrete_cudagraph_entries: dict[Any, CapturedGraph] = {}
            self.is_debugging_mode = False

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            context = get_forward_context()
            if context.cudagraph_runtime_mode != self.runtime_mode:
                return self.runnable(*args, **kwargs)
            graphs = self.concrete_cudagraph_entries
            graph = graphs.get(context.batch_descriptor)
            if graph is None:
                validate_cudagraph_capturing_enabled()
                built, layers = context.attn_metadata, context.no_compile_layers
                recurrent = {name: built[name] for name in recurrent_layers(built, layers)}
                graphs[context.batch_descriptor] = CapturedGraph(args, dict(kwargs), recurrent)
                return self.runnable(*args, **kwargs)
            if REPLAYS.eager:
                return self.runnable(*args, **kwargs)
            stale = {**context.attn_metadata, **graph.recurrent_metadata}
            REPLAYS.announce(stale, context.attn_metadata, context.no_compile_layers)
            with override_forward_context(replace(context, attn_metadata=stale)):
                return self.runnable(*graph.args, **graph.kwargs)

    return ReplayedModel


def _keep_graph_sizes(original: Any) -> Any:
    """Let the CPU platform keep the capture sizes it would empty."""
    check = original.__func__

    def check_and_update_config(cls: type, vllm_config: Any) -> None:
        sizes = list(vllm_config.compilation_config.cudagraph_capture_sizes or [])
        check(cls, vllm_config)
        vllm_config.compilation_config.cudagraph_capture_sizes = sizes

    return classmethod(check_and_update_config)


def _wrap_loaded_model(original: Callable[..., None]) -> Callable[..., None]:
    """Wrap the model as the GPU runner does after loading."""

    def load_model(runner: Any, *args: Any, **kwargs: Any) -> None:
        from vllm.config import CUDAGraphMode

        original(runner, *args, **kwargs)
        if runner.compilation_config.cudagraph_mode.has_full_cudagraphs():
            runner.model = replayed_model_class()(runner.model, CUDAGraphMode.FULL)

    return load_model


def _unwrap_model(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_model(runner: Any) -> Any:
        model = original(runner)
        return model.unwrap() if isinstance(model, replayed_model_class()) else model

    return get_model


def _separate_block_tables(original: Callable[..., None]) -> Callable[..., None]:
    """Give the block tables a device copy of their own.

    The CPU runner lets both copies be one tensor, so a row that was never committed would be seen
    all the same, and the null fill of padded rows would reach the host's rows.
    """

    def initialize_kv_cache(runner: Any, *args: Any, **kwargs: Any) -> None:
        original(runner, *args, **kwargs)
        for table in runner.input_batch.block_table.block_tables:
            buffer = table.block_table
            if buffer.gpu.data_ptr() == buffer.cpu.data_ptr():
                buffer.gpu = buffer.cpu.clone()

    return initialize_kv_cache


def _capture_at_warm_up(original: Callable[..., Any]) -> Callable[..., Any]:
    """Capture one graph per batch descriptor when the worker has warmed up."""

    def compile_or_warm_up_model(worker: Any) -> Any:
        from vllm.compilation.monitor import set_cudagraph_capturing_enabled

        times = original(worker)
        runner = worker.model_runner
        set_cudagraph_capturing_enabled(True)
        try:
            for mode, descriptors in runner.cudagraph_dispatcher.get_capture_descs():
                # Piecewise graphs belong to compiled models; only whole ones are replayed here.
                if mode.name == "FULL":
                    with phase("capture_time"):
                        runner._capture_cudagraphs(descriptors, mode)  # noqa: SLF001
        finally:
            set_cudagraph_capturing_enabled(False)
        return times

    return compile_or_warm_up_model


def platform_hooks() -> tuple[Patch, ...]:
    """Hooks by which the CPU's platform and attention let FULL graphs be, for either runner."""
    from vllm.platforms.cpu import CpuPlatform
    from vllm.v1.attention.backend import AttentionCGSupport
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionMetadataBuilder

    def always(_: Any) -> Any:
        return classmethod(lambda cls: True)  # noqa: ARG005

    def build_as_usual(_: Any) -> Callable[..., Any]:
        return lambda builder, metadata: builder.build(0, metadata)

    return (
        Patch(CpuPlatform, "support_static_graph_mode", always),
        Patch(CpuPlatform, "check_and_update_config", _keep_graph_sizes),
        Patch(
            CPUAttentionMetadataBuilder, "_cudagraph_support", lambda _: AttentionCGSupport.ALWAYS
        ),
        Patch(CPUAttentionMetadataBuilder, "build_for_cudagraph_capture", build_as_usual),
    )


@cache
def replay() -> PatchSet:
    """The hooks, made once per process."""
    from vllm.v1.worker.cpu_model_runner import CPUModelRunner
    from vllm.v1.worker.cpu_worker import CPUWorker

    return PatchSet(
        *platform_hooks(),
        Patch(CPUModelRunner, "load_model", _wrap_loaded_model),
        Patch(CPUModelRunner, "get_model", _unwrap_model),
        Patch(CPUModelRunner, "initialize_kv_cache", _separate_block_tables),
        Patch(CPUWorker, "compile_or_warm_up_model", _capture_at_warm_up),
    )
