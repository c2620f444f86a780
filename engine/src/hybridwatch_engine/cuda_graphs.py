"""The FULL CUDA graphs of a GPU, seen and set aside.

vLLM's own graphs are captured and replayed as released (``compilation/cuda_graph.py``, model runner
V1; V2 has a graph manager of its own). Around that, three things: the metadata objects of the Mamba
layers are remembered with the graph that was captured over them, observers are told before each
replay, and a replay can be set aside for the same model on the metadata that the host has just
built. An engine that nobody observes pays a comparison a step.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.replays import REPLAYS

_KEPT = "hybridwatch_graph"
"""Attribute of vLLM's entry of a graph: what was captured goes when the graph goes."""


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    from vllm.config import CUDAGraphMode
    from vllm.forward_context import get_forward_context, is_forward_context_available

    def call(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
        if wrapper.runtime_mode != CUDAGraphMode.FULL or not is_forward_context_available():
            return original(wrapper, *args, **kwargs)
        context = get_forward_context()
        if context.cudagraph_runtime_mode != CUDAGraphMode.FULL:
            return original(wrapper, *args, **kwargs)
        graphs, batch = wrapper.concrete_cudagraph_entries, context.batch_descriptor
        if batch not in graphs or graphs[batch].cudagraph is None:
            answer = original(wrapper, *args, **kwargs)
            setattr(graphs[batch], _KEPT, context.attn_metadata)
            return answer
        if REPLAYS.eager:
            return wrapper.runnable(*args, **kwargs)
        reads = getattr(graphs[batch], _KEPT)
        REPLAYS.announce(reads, context.attn_metadata, context.no_compile_layers)
        return original(wrapper, *args, **kwargs)

    return call


@cache
def watched_graphs() -> PatchSet:
    """The hook, made once per process; it has to be in place before graphs are captured.

    Raises:
        AttributeError: This release has renamed the wrapper.
    """
    from vllm.compilation.cuda_graph import CUDAGraphWrapper

    return PatchSet(Patch(CUDAGraphWrapper, "__call__", _watched))
