"""Model runner V2's FULL graphs, replayed on the CPU.

V2 captures a closure of its own making: the model over the runner's persistent buffers, under the
metadata that were built for the capture. So a graph here *is* that closure, called again: it reads
the same buffers and the same branch structure, not what the host has built since. Which batch
gets which graph, and what is padded, is the release's own code.

One field is the host's on every backend and not the graph's: the plan by which the CPU's attention
kernel shares work among threads (``scheduler_metadata``). Each replay takes the one of its batch;
block tables, slots and lengths of attention are captured like all else.

The graphs of heads that draft from the target's hidden states (Eagle, MTP) are replayed alike, a
graph for the first draft and one for each later; other kinds of drafts run without graphs.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from inspect import signature
from typing import Any

from hybridwatch_engine.cpu.graph_replay import platform_hooks
from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.replays import captured_metadata, find_fresh, is_replayed, watched_graphs_v2


class HostGraph:
    """Stands for ``torch.cuda.CUDAGraph``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.forward: Callable[[Any], None] | None = None

    def replay(self) -> None:
        """Run what was captured."""
        from vllm.config import CUDAGraphMode

        if self.forward is None:
            raise RuntimeError("a graph is replayed that was never captured")
        self.forward(CUDAGraphMode.NONE)


def _capture_closures(original: Callable[..., None]) -> Callable[..., None]:
    def capture(manager: Any, create: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not is_replayed(manager):
            return
        forwards: dict[Any, Any] = {}

        def create_and_keep(desc: Any, warmup: bool) -> Any:
            forwards[desc] = create(desc, warmup)
            return forwards[desc]

        original(manager, create_and_keep, *args, **kwargs)
        for desc, graph in manager.graphs.items():
            graph.forward = forwards[desc]

    return capture


def _with_plans_of_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    """Give the attention of a replay the work plan of its batch."""

    def run_fullgraph(manager: Any, desc: Any) -> Any:
        fresh = find_fresh(manager)
        for name, built in captured_metadata(manager, desc).items():
            if hasattr(built, "scheduler_metadata"):
                built.scheduler_metadata = fresh[name].scheduler_metadata
        return original(manager, desc)

    return run_fullgraph


def _capture_at_warm_up(original: Callable[..., Any]) -> Callable[..., Any]:
    def compile_or_warm_up_model(worker: Any) -> Any:
        times = original(worker)
        capture = worker.model_runner.capture_model
        # Not for profiling, it would lock a workspace that a CPU does not have.
        capture(**{"profile_only": True} if "profile_only" in signature(capture).parameters else {})
        return times

    return compile_or_warm_up_model


@cache
def replay_v2() -> PatchSet:
    """The hooks, made once per process."""
    import torch
    from vllm.platforms.cpu import CpuPlatform
    from vllm.v1.worker.cpu_worker import CPUWorker  # first: it puts stand-ins for CUDA's streams
    from vllm.v1.worker.gpu import cudagraph_utils

    def no_scope(_: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: nullcontext()  # noqa: ARG005

    aside = {
        "graph_capture": no_scope,
        "capture_pool": no_scope,
        "set_graph_pool_id": lambda _: lambda _: None,
        "current_stream": lambda _: lambda: None,
    }
    return PatchSet(
        *watched_graphs_v2().patches,
        *platform_hooks(),
        Patch(CpuPlatform, "get_global_graph_pool", lambda _: lambda _: (0, 0)),
        Patch(torch.cuda, "CUDAGraph", lambda _: HostGraph),
        Patch(torch.cuda, "graph", no_scope),
        *(
            Patch(cudagraph_utils, name, make)
            for name, make in aside.items()
            if hasattr(cudagraph_utils, name)
        ),
        Patch(cudagraph_utils.CudaGraphManager, "run_fullgraph", _with_plans_of_batch),
        Patch(cudagraph_utils.CudaGraphManager, "capture", _capture_closures),
        Patch(CPUWorker, "compile_or_warm_up_model", _capture_at_warm_up),
    )
