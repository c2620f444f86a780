"""Replays of FULL graphs as everything here sees them, a CPU's and a GPU's alike.

A captured graph is the kernels in the order of capture, reading the buffers they read at capture.
Whatever the host builds later reaches a replay only by being written into those buffers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class CapturedGraph:
    """What a graph of one batch descriptor holds.

    Attributes:
        args: Positional arguments of the model at capture: views of persistent buffers.
        kwargs: Keyword arguments, likewise.
        mamba_metadata: Layer name to the metadata object in force at capture; its tensors are the
            builder's persistent buffers.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mamba_metadata: dict[str, Any]


@dataclass(slots=True)
class Replays:
    """How this process replays, changed while it runs.

    Attributes:
        eager: Run batches that have a graph on the host's fresh metadata instead of the captured
            one: what the engine would say without graphs, the reference for greedy tokens.
        observers: Called before each replay, with the graph and the fresh forward context.
    """

    eager: bool = False
    observers: list[Callable[[CapturedGraph, Any], None]] = field(default_factory=list)


REPLAYS = Replays()


def mamba_part(metadata: Any) -> dict[str, Any]:
    """The metadata of Mamba layers alone, by layer name; nothing of a batch without any."""
    from vllm.v1.attention.backends.mamba_attn import BaseMambaAttentionMetadata

    if not isinstance(metadata, dict):
        return {}
    return {
        layer: built
        for layer, built in metadata.items()
        if isinstance(built, BaseMambaAttentionMetadata)
    }
