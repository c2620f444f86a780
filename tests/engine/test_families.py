"""Families of models that the contract probe does not know: the engine lives, and it is said.

Shapes as small as they go, with made-up weights.
"""

import json
from dataclasses import replace

import pytest

from hybridwatch.errors import MeasurementError
from hybridwatch.home import home
from hybridwatch.measure.bench import Bench
from hybridwatch.measure.phase import CONTRACTS, Station, measure
from hybridwatch.record.run import Phase
from tests.engine.conftest import HEALTHY

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

SMALL = {
    "vocab_size": 259,
    "eos_token_id": 258,
    "hidden_size": 128,
    "intermediate_size": 256,
    "moe_intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 1024,
}
SHORT_CONVOLUTIONS = {
    **SMALL,
    "architectures": ["Lfm2MoeForCausalLM"],
    "model_type": "lfm2_moe",
    "num_key_value_heads": 4,
    "num_dense_layers": 2,
    "layer_types": ["conv", "full_attention", "conv", "conv"],
}
GATED_DELTA_NETS = {
    **SMALL,
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "shared_expert_intermediate_size": 64,
}


@pytest.fixture
def family(scenario, sides, tmp_path):
    """Makes one contract trial on an engine of a made-up model."""

    def of(configuration, dtype, flags):
        folder = tmp_path / "models" / "configs" / "small"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({**configuration, "dtype": dtype}))
        (tmp_path / "models" / "tiny-hybrid").symlink_to(home() / "models" / "tiny-hybrid")
        made_up = {"load_format": "dummy", "dtype": dtype}
        engine = scenario.engine.model_copy(update=made_up)
        small = scenario.model_copy(update={"model": "small", "engine": engine})
        side = replace(sides[HEALTHY], spec=replace(sides[HEALTHY].spec, flags=flags))
        with Bench(small, [side], tmp_path / "models", tmp_path, print) as bench:
            bench.make_ready(HEALTHY)
            station = Station(bench, HEALTHY, tmp_path)
            try:
                return measure(Phase.CONTRACT, station)
            finally:
                assert bench.is_alive(HEALTHY), "a probe has brought the engine down"

    return of


def test_layers_without_a_recurrent_state_leave_out_its_contracts_and_no_others(family):
    """A short convolution keeps its last inputs and nothing else."""
    measured = family(SHORT_CONVOLUTIONS, "float32", {})
    held = {sample.metric: sample.values for sample in measured.samples}
    assert held["contract.padded_rows_prefilling"] == (0.0,)
    assert held["contract.slots_off_block_table"] == (0.0,)
    assert set(measured.unsupported) == {
        "contract.states_off",
        "contract.block_ends_off",
        "contract.slots_short",
    }
    (reason,) = set(measured.unsupported.values())
    assert reason.startswith("ShortConv: expected a convolution's inputs and a state, found 1")
    assert held.keys() | measured.unsupported.keys() <= {f"contract.{name}" for name in CONTRACTS}


@pytest.mark.slow  # an engine to show what tests/unit/measure/test_replayed_layers.py says
def test_replay_that_captured_no_layer_is_a_failed_trial(family):
    """Metadata of gated delta nets are not Mamba's: the CPU's replay has none of their layers."""
    with pytest.raises(MeasurementError) as failed:
        family(GATED_DELTA_NETS, "bfloat16", {"mamba-ssm-cache-dtype": "float32"})
    assert "the replay captured 0 recurrent layers" in str(failed.value)
    assert "found GDNAttentionMetadataBuilder" in str(failed.value)
