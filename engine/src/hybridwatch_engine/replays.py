"""Replays of FULL graphs as everything here sees them, a CPU's and a GPU's alike.

A captured graph is the kernels in the order of capture, reading the buffers they read at capture.
Whatever the host builds later reaches a replay only by being written into those buffers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

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
    """One replay of a FULL graph, seen before it runs.

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
    """How this process replays, changed while it runs.

    Attributes:
        eager: Run batches that have a graph without it: what the engine would say without graphs,
            the reference for greedy tokens. Model runner V1 keeps the padded batch; V2 chooses as
            if nothing had been captured.
        observers: Called before each replay.
    """

    eager: bool = False
    observers: list[Callable[[Replay], None]] = field(default_factory=list)

    def announce(self, reads: Metadata, fresh: Metadata, layers: Metadata) -> None:
        """Tell the observers of a replay; one without recurrent layers, as a draft's, is passed by.

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

    Which layers these are, their class says and not that of their metadata, which each family
    (Mamba, gated delta nets, short convolutions) has of its own.
    """
    from vllm.model_executor.layers.mamba.abstract import MambaBase

    names = built if isinstance(built, dict) else ()
    return tuple(name for name in names if isinstance(layers.get(name), MambaBase))


def name_kind(metadata: Any) -> str:
    """Name the kind of the layers that metadata are for; one that is not known by the class."""
    name = type(metadata).__name__
    return _KINDS.get(name, name)
