"""How much of the model a replay is a replay of: the layers whose metadata was captured.

On a CPU a graph replays what was captured of its recurrent layers and nothing else
(``cpu/graph_replay.py``). One that captured none runs as an engine without graphs does, and says
the same tokens whatever is wrong.
"""

from dataclasses import dataclass, field

from hybridwatch_engine.patch import PatchSet
from hybridwatch_engine.probes.counting import CountingProbe
from hybridwatch_engine.replays import REPLAYS, Replay, name_kind


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
        """Stop counting and tell."""
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
