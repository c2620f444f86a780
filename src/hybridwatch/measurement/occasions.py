"""Refuses contract trials that prove nothing: what shall not break was never put to the test."""

from collections.abc import Iterable, Mapping
from typing import Any

from hybridwatch.errors import MeasurementError
from hybridwatch.scenarios.fixes import NO_FIX, catalogue


def require_occasion(fix: str, counts: Mapping[str, Any], unwatched: Mapping[str, str]) -> None:
    """Refuse a trial in which what a fix mends could not have been broken.

    Raises:
        MeasurementError: There was no occasion.
    """
    if fix == NO_FIX:
        return
    # A counter: a rule that was never put to the test proves nothing.
    occasions = catalogue()[fix].occasion
    if occasions not in unwatched and not counts[occasions]:
        raise MeasurementError(
            f"the waves gave no occasion to break what {fix} mends: expected {occasions} above 0, "
            f"found {counts}; look at workload.waves and engine.cudagraph_capture_sizes"
        )


def require_replayed_layers(
    counts: Mapping[str, Any], unwatched: Mapping[str, str], needed: Iterable[tuple[str, int]]
) -> None:
    """Refuse tokens of replays that are none: on a CPU only captured layers are replayed.

    ``unwatched`` is what the probes could not count, with the reasons. ``needed`` are kinds of
    layers, each with how many of them each graph must replay.

    Raises:
        MeasurementError: Graphs were replayed, and no layer in any; or fewer than are needed.
    """
    graphs, layers = counts.get("graphs_replayed", 0), counts.get("layers_replayed", {})
    if graphs and not layers:
        reason = f": {find_first_reason(unwatched)}" if unwatched else ""
        raise MeasurementError(
            f"the replay captured 0 recurrent layers, so each of its {graphs} graphs ran as "
            f"without graphs, and equal tokens would prove nothing{reason}"
        )
    for kind, least in needed:
        if not graphs or layers.get(kind, 0) < least * graphs:
            raise MeasurementError(
                f"expect.replayed_layers.{kind}: expected {least} in each replayed graph, found "
                f"{_found(layers, graphs)}"
            )


def _found(layers: Mapping[str, int], graphs: int) -> str:
    """What the replayed graphs hold, on average."""
    if not graphs:
        return "that none was replayed"
    return ", ".join(f"{number / graphs:g} {kind}" for kind, number in layers.items())


def find_first_reason(unwatched: Mapping[str, str]) -> str:
    """Say why a probe could not watch something."""
    return next(iter(unwatched.values()), "the probe counts none")
