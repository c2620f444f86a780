"""Replays of FULL graphs as everything here sees them, a CPU's and a GPU's alike.

A captured graph is the kernels in the order of capture, reading the buffers they read at capture.
Whatever the host builds later reaches a replay only by being written into those buffers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

_KINDS: Final = {
    "Mamba1AttentionMetadata": "mamba1",
    "Mamba2AttentionMetadata": "mamba2",
    "ShortConvAttentionMetadata": "short_convolution",
    "GDNAttentionMetadata": "gated_delta_net",
}
"""Kinds of recurrent layers, by vLLM's class of their metadata."""


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


def recurrent_part(context: Any) -> dict[str, Any]:
    """The metadata of recurrent layers alone, by layer name; nothing of a batch without any.

    Which layers these are, their class says and not that of their metadata, which each family
    (Mamba, gated delta nets, short convolutions) has of its own.

    Args:
        context: vLLM's forward context.
    """
    from vllm.model_executor.layers.mamba.abstract import MambaBase

    if not isinstance(context.attn_metadata, dict):
        return {}
    layers = context.no_compile_layers
    return {
        name: built
        for name, built in context.attn_metadata.items()
        if isinstance(layers.get(name), MambaBase)
    }


def kind_of(metadata: Any) -> str:
    """Name the kind of the layers that metadata are for; one that is not known by the class."""
    name = type(metadata).__name__
    return _KINDS.get(name, name)
