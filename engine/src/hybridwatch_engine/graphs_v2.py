"""The FULL graphs of model runner V2, seen and set aside; a GPU's and a CPU's alike.

V2 keeps a graph for each shape of a batch (``v1/worker/gpu/cudagraph_utils.py``): what is captured
reads the runner's persistent buffers and the metadata that the model's state made for the capture.
Here that metadata is kept with the graph and shown to observers before each replay, beside the
metadata of the batch; and a replay can be set aside, by choosing as if nothing had been captured.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.replays import REPLAYS

_KEPT = "hybridwatch_captured"
"""Attribute of vLLM's graph manager: what was captured goes when the manager goes."""


@dataclass(slots=True)
class Built:
    """The metadata that the target's state built last.

    Attributes:
        metadata: By layer.
        requests: Ids of the requests that they were built for, row by row.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    requests: tuple[str, ...] = ()


BUILT = Built()


def _remember_built(original: Callable[..., Any]) -> Callable[..., Any]:
    def prepare_attn(state: Any, input_batch: Any, *args: Any, **kwargs: Any) -> Any:
        BUILT.metadata = original(state, input_batch, *args, **kwargs)
        BUILT.requests = tuple(input_batch.req_ids)
        return BUILT.metadata

    return prepare_attn


def is_of_target(manager: Any) -> bool:
    """Whether a graph manager holds the target's graphs; a draft has managers of its own."""
    from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager

    return isinstance(manager, ModelCudaGraphManager)


def _keep_captured(original: Callable[..., None]) -> Callable[..., None]:
    def capture(manager: Any, create: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not is_of_target(manager):
            original(manager, create, *args, **kwargs)
            return
        captured: dict[Any, dict[str, Any]] = {}
        setattr(manager, _KEPT, captured)

        def create_and_keep(desc: Any, warmup: bool) -> Any:
            forward = create(desc, warmup)
            captured[desc] = BUILT.metadata
            return forward

        original(manager, create_and_keep, *args, **kwargs)

    return capture


def captured_metadata(manager: Any, desc: Any) -> dict[str, Any]:
    """The metadata that a graph of the target was captured over, by layer."""
    kept: dict[str, Any] = getattr(manager, _KEPT)[desc]
    return kept


def _announce(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_fullgraph(manager: Any, desc: Any) -> Any:
        if is_of_target(manager):
            layers = manager.compilation_config.static_forward_context
            REPLAYS.announce(captured_metadata(manager, desc), BUILT.metadata, layers)
        return original(manager, desc)

    return run_fullgraph


@contextmanager
def _without_graphs(manager: Any) -> Iterator[None]:
    """Have a manager choose as before its graphs were captured."""
    captured = manager._graphs_captured  # noqa: SLF001 - vLLM has no other way to say it
    manager._graphs_captured = False  # noqa: SLF001
    try:
        yield
    finally:
        manager._graphs_captured = captured  # noqa: SLF001


def _set_aside(original: Callable[..., Any]) -> Callable[..., Any]:
    def dispatch(manager: Any, *args: Any, **kwargs: Any) -> Any:
        if not REPLAYS.eager:
            return original(manager, *args, **kwargs)
        with _without_graphs(manager):
            return original(manager, *args, **kwargs)

    return dispatch


@cache
def watched_graphs_v2() -> PatchSet:
    """The hooks, made once per process; they have to be in place before graphs are captured.

    Raises:
        AttributeError: This release has renamed one of the targets.
    """
    from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager
    from vllm.v1.worker.gpu.model_states.mamba_hybrid import MambaHybridModelState

    return PatchSet(
        Patch(MambaHybridModelState, "prepare_attn", _remember_built),
        Patch(CudaGraphManager, "capture", _keep_captured),
        Patch(CudaGraphManager, "run_fullgraph", _announce),
        Patch(CudaGraphManager, "dispatch", _set_aside),
    )
