"""Blocks that the scheduler has copied: each layer finds in the copy what it had in the original.

A prompt that begins like another one within a block gets a copy of that block to go on in. Layers
of several kinds share the memory of a block, and each of them sees its own part of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from hybridwatch_engine.patch import Patch, PatchSet
from hybridwatch_engine.probes.counting import CountingProbe

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
