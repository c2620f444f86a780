"""Tokens of a replay that replays nothing are no evidence."""

import pytest

from hybridwatch.errors import MeasurementError
from hybridwatch.measure.occasions import require_replayed_layers


def test_replay_of_no_layer_is_refused_with_the_reason() -> None:
    unwatched = {"replays": "linear_attn: expected metadata built as for Mamba"}
    with pytest.raises(MeasurementError, match=r"captured 0 recurrent .* its 3 .*: linear_attn"):
        require_replayed_layers({"graphs_replayed": 3, "layers_replayed": 0}, unwatched)


@pytest.mark.parametrize("graphs", [0, 3])
def test_replay_of_layers_and_trial_without_graphs_are_taken(graphs: int) -> None:
    require_replayed_layers({"graphs_replayed": graphs, "layers_replayed": 3 * graphs}, {})
