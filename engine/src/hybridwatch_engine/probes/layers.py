"""What layers find and write: copies of blocks, replayed kinds, the slots of a drafter.

A prompt that begins like another one within a block gets a copy of that block to go on in. Layers
of several kinds share the memory of a block, and each of them sees its own part of it.

On a CPU a graph replays what was captured of its recurrent layers and nothing else
(``cpu/graph_replay.py``). One that captured none runs as an engine without graphs does, and says
the same tokens, right or wrong.

Layers of a draft and Mamba layers of the target share their memory, block by block; the cache
groups keep apart only because each has block ids of its own. Every pass of the drafter is looked at
just before it writes, by the slots that it is about to write.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe
from hybridwatch_engine.replays import REPLAYS, Replay, name_kind

_RUNNERS: Final = ("vllm.v1.worker.gpu_model_runner", "vllm.v1.worker.gpu.model_runner")
_COPY: Final = "copy_kv_cache_blocks_inplace"


@dataclass(slots=True)
class BlockCopyCounts:
    """Totals since the probe was started.

    Attributes:
        blocks_copied: Blocks that were copied.
        blocks_copied_short: Of these, blocks in whose copy some layer finds something else.
    """

    blocks_copied: int = 0
    blocks_copied_short: int = 0


class BlockCopiesProbe(CountingProbe[BlockCopyCounts]):
    """Looks at every copy while it is on; a release without this function copies none."""

    def __init__(self) -> None:
        super().__init__(BlockCopyCounts)

    def _make_hooks(self) -> PatchSet:
        runners = [import_module(name) for name in _RUNNERS]
        return PatchSet(
            *(Patch(one, _COPY, self._see_copy) for one in runners if hasattr(one, _COPY))
        )

    def _see_copy(self, original: Callable[..., None]) -> Callable[..., None]:
        def copy(kv_caches: Iterable[Any], num_blocks: int, copies: Sequence[Any]) -> None:
            caches = list(kv_caches)
            views = [view for cache in caches for view in _views(cache)]
            wanted = self._watch(_sources, views, num_blocks, copies)
            original(caches, num_blocks, copies)
            if wanted is not None:
                self._watch(self._count, views, num_blocks, copies, wanted)

        return copy

    def _count(
        self, views: list[Any], num_blocks: int, copies: Sequence[Any], wanted: list[Any]
    ) -> None:
        targets = [target for _, target in copies]
        off = [
            (_by_block(view, num_blocks)[targets] != one).flatten(1).any(1).tolist()
            for view, one in zip(views, wanted, strict=True)
        ]
        self._counts.blocks_copied += len(targets)
        self._counts.blocks_copied_short += sum(map(any, zip(*off, strict=True)))


def _views(cache: Any) -> Sequence[Any]:
    """The tensors of a layer; up to 0.28.0 a Mamba layer has one for each of its states."""
    return cache if isinstance(cache, list | tuple) else (cache,)


def _sources(views: list[Any], num_blocks: int, copies: Sequence[Any]) -> list[Any]:
    """What each layer has in the blocks that are copied, before they are."""
    sources = [source for source, _ in copies]
    return [_by_block(view, num_blocks)[sources] for view in views]


def _by_block(view: Any, num_blocks: int) -> Any:
    """The bytes that a layer sees of each block; one of the scheduler's may be several of its.

    Bytes, since "not a number" is not equal to itself.
    """
    import torch

    return view.unflatten(0, (num_blocks, -1)).view(torch.uint8)


@dataclass(slots=True)
class ReplayedLayerCounts:
    """Totals since the probe was started.

    Attributes:
        graphs_replayed: FULL graphs replayed, for requests or by dummy runs.
        layers_replayed: Layers on captured metadata by their kind, over all of these.
    """

    graphs_replayed: int = 0
    layers_replayed: dict[str, int] = field(default_factory=dict)


class ReplayedLayersProbe(CountingProbe[ReplayedLayerCounts]):
    """Counts what replays are made of while it is on; an observer, so it needs no hooks."""

    def __init__(self) -> None:
        super().__init__(ReplayedLayerCounts)

    def start(self) -> None:
        """Count from zero."""
        super().start()
        if self._see not in REPLAYS.observers:
            REPLAYS.observers.append(self._see)

    def stop(self) -> dict[str, int]:
        """Stop counting and return the counts."""
        if self._see in REPLAYS.observers:
            REPLAYS.observers.remove(self._see)
        return super().stop()

    def _make_hooks(self) -> PatchSet:
        return PatchSet()

    def _see(self, replay: Replay) -> None:
        self._counts.graphs_replayed += 1
        layers = self._counts.layers_replayed
        for kind in (name_kind(replay.reads[name]) for name in replay.recurrent):
            layers[kind] = layers.get(kind, 0) + 1


@dataclass(slots=True)
class DraftWriteCounts:
    """Totals since the probe was started.

    Attributes:
        draft_passes: Times that the drafter ran for requests.
        draft_blocks: Blocks that it wrote into, each once a pass.
        mamba_blocks_overwritten: Of these, blocks of a Mamba group that the draft has no claim to.
    """

    draft_passes: int = 0
    draft_blocks: int = 0
    mamba_blocks_overwritten: int = 0


class DraftWritesProbe(CountingProbe[DraftWriteCounts]):
    """Counts the drafter's writes while it is on; model runner V1."""

    def __init__(self) -> None:
        super().__init__(DraftWriteCounts)
        self._runner: Any = None

    def _make_hooks(self) -> PatchSet:
        from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner

        return PatchSet(
            Patch(GPUModelRunner, "propose_draft_token_ids", self._see_proposal),
            Patch(SpecDecodeBaseProposer, "_get_slot_mapping", self._see_slots),
        )

    def _see_proposal(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def propose(runner: Any, *args: Any, **kwargs: Any) -> Any:
            self._runner = runner
            try:
                return original(runner, *args, **kwargs)
            finally:
                self._runner = None

        return propose

    def _see_slots(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_slot_mapping(drafter: Any, *args: Any, **kwargs: Any) -> Any:
            slots_of_layers = original(drafter, *args, **kwargs)
            # A dummy run drafts for no request.
            if self._runner is not None and slots_of_layers:
                self._watch(self._count, self._runner, drafter, slots_of_layers)
            return slots_of_layers

        return get_slot_mapping

    def _count(self, runner: Any, drafter: Any, slots_of_layers: dict[str, Any]) -> None:
        """Count one pass; all layers of a drafter write into the same slots."""
        from vllm.v1.attention.backends.utils import NULL_BLOCK_ID

        group, groups = drafter.kv_cache_gid, runner.kv_cache_config.kv_cache_groups
        slots = next(iter(slots_of_layers.values())).cpu()
        blocks = slots[slots >= 0] // groups[group].kv_cache_spec.block_size
        written = set(blocks.tolist()) - {NULL_BLOCK_ID}
        of_mamba = set(_blocks(runner, _mamba_groups(groups))) - set(_blocks(runner, [group]))
        self._counts.draft_passes += 1
        self._counts.draft_blocks += len(written)
        self._counts.mamba_blocks_overwritten += len(written & of_mamba)


def _blocks(runner: Any, groups: Iterable[int]) -> Iterable[int]:
    """Blocks that requests have in these groups, as the worker knows them."""
    for group in groups:
        for request in runner.requests.values():
            yield from request.block_ids[group]


def _mamba_groups(groups: list[Any]) -> list[int]:
    from vllm.v1.kv_cache_interface import MambaSpec

    return [at for at, group in enumerate(groups) if isinstance(group.kv_cache_spec, MambaSpec)]
