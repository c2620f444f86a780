"""Replays of FULL graphs, as probes see them, on a CPU and a GPU alike.

A captured graph is the kernels in the order of capture, reading the buffers they read at capture.
Metadata built later reach a replay only by being written into those buffers.

vLLM's own graphs are captured and replayed as released (``compilation/cuda_graph.py``, model runner
V1). Three additions: the metadata objects of the Mamba layers are stored with the graph that was
captured over them, observers are called before each replay, and a replay can be replaced by the
same model on the metadata that the host has just built. An engine without observers pays one
comparison a step.

V2 keeps a graph for each shape of a batch (``v1/worker/gpu/cudagraph_utils.py``), on either device:
what is captured reads the runner's persistent buffers and the metadata that the model's state made
for the capture. A replay is set aside there by choosing as if nothing had been captured.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet

_KINDS: Final = {
    "Mamba1AttentionMetadata": "mamba1",
    "Mamba2AttentionMetadata": "mamba2",
    "ShortConvAttentionMetadata": "short_convolution",
    "GDNAttentionMetadata": "gated_delta_net",
}
"""Kinds of recurrent layers, by vLLM's class of their metadata."""


Metadata = Mapping[str, Any]
"""Layer name to the attention metadata that vLLM built for it."""


@dataclass(frozen=True, slots=True)
class Replay:
    """One replay of a FULL graph, before it runs.

    Attributes:
        reads: What the graph was captured over; the tensors in it are the buffers its kernels read.
        fresh: What the host has built for this batch.
        recurrent: Names of the recurrent layers in ``reads``.
    """

    reads: Metadata
    fresh: Metadata
    recurrent: tuple[str, ...]


@dataclass(slots=True)
class Replays:
    """How this process replays; changed while it runs.

    Attributes:
        eager: Run batches that have a graph without it: the engine's answers without graphs,
            the reference for greedy tokens. Model runner V1 keeps the padded batch; V2 chooses as
            if nothing had been captured.
        observers: Called before each replay of the target's graphs.
        draft_observers: Called before each replay of a draft's graph on V2, with what the graph was
            captured over, and whether it makes a draft after the first.
    """

    eager: bool = False
    observers: list[Callable[[Replay], None]] = field(default_factory=list)
    draft_observers: list[Callable[[Metadata, bool], None]] = field(default_factory=list)

    def announce(self, reads: Metadata, fresh: Metadata, layers: Metadata) -> None:
        """Call the observers; a replay without recurrent layers, such as a draft's, is left out.

        Args:
            reads: As in ``Replay``.
            fresh: As in ``Replay``.
            layers: Every layer of the model by name, ``static_forward_context`` to vLLM.
        """
        if not self.observers:
            return
        recurrent = recurrent_layers(reads, layers)
        if recurrent:
            replay = Replay(reads, fresh, recurrent)
            for observer in self.observers:
                observer(replay)


REPLAYS = Replays()


def recurrent_layers(built: Any, layers: Metadata) -> tuple[str, ...]:
    """Name the recurrent layers that metadata were built for; none for a batch without any.

    The layers' class decides, since each family (Mamba, gated delta nets, short convolutions) has
    its own class of metadata.
    """
    from vllm.model_executor.layers.mamba.abstract import MambaBase

    names = built if isinstance(built, dict) else ()
    return tuple(name for name in names if isinstance(layers.get(name), MambaBase))


def name_kind(metadata: Any) -> str:
    """Name the kind of the layers that metadata are for; the class name for an unknown kind."""
    name = type(metadata).__name__
    return _KINDS.get(name, name)


_GRAPH_ATTRIBUTE = "hybridwatch_graph"
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
            setattr(graphs[batch], _GRAPH_ATTRIBUTE, context.attn_metadata)
            return answer
        if REPLAYS.eager:
            return wrapper.runnable(*args, **kwargs)
        reads = getattr(graphs[batch], _GRAPH_ATTRIBUTE)
        REPLAYS.announce(reads, context.attn_metadata, context.no_compile_layers)
        return original(wrapper, *args, **kwargs)

    return call


@cache
def watched_graphs() -> PatchSet:
    """The hook, made once per process; it has to be in place before graphs are captured."""
    from vllm.compilation.cuda_graph import CUDAGraphWrapper

    return PatchSet(Patch(CUDAGraphWrapper, "__call__", _watched))


_CAPTURED = "hybridwatch_captured"
"""Attribute of vLLM's graph manager: what was captured goes when the manager goes."""


@dataclass(slots=True)
class Built:
    """The metadata that were built last.

    Attributes:
        metadata: Those of the target's state, by layer.
        requests: Ids of the requests that they were built for, row by row.
        drafts: Those of a draft after the first, by layer; the first takes the target's.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    requests: tuple[str, ...] = ()
    drafts: dict[str, Any] = field(default_factory=dict)


BUILT = Built()


def _remember_built(original: Callable[..., Any]) -> Callable[..., Any]:
    def prepare_attn(state: Any, input_batch: Any, *args: Any, **kwargs: Any) -> Any:
        BUILT.metadata = original(state, input_batch, *args, **kwargs)
        BUILT.requests = tuple(input_batch.req_ids)
        return BUILT.metadata

    return prepare_attn


def _remember_drafts(original: Callable[..., Any]) -> Callable[..., Any]:
    def build_attn_metadata(*args: Any, **kwargs: Any) -> Any:
        BUILT.drafts = original(*args, **kwargs)
        return BUILT.drafts

    return build_attn_metadata


def is_of_target(manager: Any) -> bool:
    """Whether a graph manager holds the target's graphs; a draft has managers of its own."""
    from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager

    return isinstance(manager, ModelCudaGraphManager)


def is_replayed(manager: Any) -> bool:
    """Whether a manager's graphs are known: the target's, and those of heads such as Eagle's."""
    return is_of_target(manager) or type(manager).__name__ == "SpeculatorCudaGraphManager"


def _makes_later_drafts(manager: Any) -> bool:
    """Whether a manager's graphs make a draft after the first, of one token a request."""
    return not is_of_target(manager) and bool(manager.decode_query_len == 1)


def find_fresh(manager: Any) -> dict[str, Any]:
    """The metadata of the batch that a manager's graph is about to run on, by layer."""
    return BUILT.drafts if _makes_later_drafts(manager) else BUILT.metadata


def _keep_captured(original: Callable[..., None]) -> Callable[..., None]:
    def capture(manager: Any, create: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not is_replayed(manager):
            original(manager, create, *args, **kwargs)
            return
        captured: dict[Any, dict[str, Any]] = {}
        setattr(manager, _CAPTURED, captured)

        def create_and_keep(desc: Any, warmup: bool) -> Any:
            forward = create(desc, warmup)
            captured[desc] = BUILT.metadata
            return forward

        original(manager, create_and_keep, *args, **kwargs)

    return capture


def captured_metadata(manager: Any, desc: Any) -> dict[str, Any]:
    """The metadata that a graph was captured over, by layer."""
    kept: dict[str, Any] = getattr(manager, _CAPTURED)[desc]
    return kept


def _announce(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_fullgraph(manager: Any, desc: Any) -> Any:
        if is_of_target(manager):
            layers = manager.compilation_config.static_forward_context
            REPLAYS.announce(captured_metadata(manager, desc), BUILT.metadata, layers)
        elif is_replayed(manager):
            for observer in REPLAYS.draft_observers:
                observer(captured_metadata(manager, desc), _makes_later_drafts(manager))
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
    """The hooks, made once per process; they have to be in place before graphs are captured."""
    from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager
    from vllm.v1.worker.gpu.model_states.mamba_hybrid import MambaHybridModelState
    from vllm.v1.worker.gpu.spec_decode import speculator

    return PatchSet(
        Patch(MambaHybridModelState, "prepare_attn", _remember_built),
        Patch(speculator, "build_attn_metadata", _remember_drafts),
        Patch(CudaGraphManager, "capture", _keep_captured),
        Patch(CudaGraphManager, "run_fullgraph", _announce),
        Patch(CudaGraphManager, "dispatch", _set_aside),
    )
