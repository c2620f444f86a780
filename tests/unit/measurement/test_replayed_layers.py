"""Tokens of a replay that replays nothing are no evidence."""

from collections.abc import Mapping

import pytest

from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.phase import require_replayed_layers


def counts(graphs: int, **layers: int) -> Mapping[str, object]:
    return {"graphs_replayed": graphs, "layers_replayed": layers}


def test_replay_of_no_layer_is_refused_with_the_reason() -> None:
    unwatched = {"replays": "linear_attn: expected metadata built as for Mamba"}
    with pytest.raises(MeasurementError, match=r"captured 0 recurrent .* its 3 .*: linear_attn"):
        require_replayed_layers(counts(3), unwatched, ())


@pytest.mark.parametrize("seen", [counts(0), counts(3, mamba2=9)])
def test_replay_of_layers_and_trial_without_graphs_are_taken(seen: Mapping[str, object]) -> None:
    require_replayed_layers(seen, {}, ())


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (counts(3, mamba2=9), "found 3 mamba2"),
        (counts(4, gated_delta_net=11), "found 2.75 gated_delta_net"),
        (counts(0), "found that none was replayed"),
    ],
)
def test_replay_of_fewer_layers_than_a_scenario_needs_is_refused(
    seen: Mapping[str, object], found: str
) -> None:
    wanted = r"expect.replayed_layers.gated_delta_net: expected 3 in each replayed graph, "
    with pytest.raises(MeasurementError, match=wanted + found):
        require_replayed_layers(seen, {}, [("gated_delta_net", 3)])


def test_replay_of_all_layers_that_a_scenario_needs_is_taken() -> None:
    require_replayed_layers(counts(4, gated_delta_net=12), {}, [("gated_delta_net", 3)])
