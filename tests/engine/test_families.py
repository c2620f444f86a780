"""Other families of models than Mamba2: watched as far as the probes know them, and no further.

Shapes as small as they go, with made-up weights.
"""

import json
from dataclasses import replace

import pytest

from hybridwatch.engine.builds import parse_label
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

    def of(configuration, dtype, flags, planted=""):
        folder = tmp_path / "models" / "configs" / "small"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({**configuration, "dtype": dtype}))
        (tmp_path / "models" / "tiny-hybrid").symlink_to(home() / "models" / "tiny-hybrid")
        made_up = {"load_format": "dummy", "dtype": dtype}
        engine = scenario.engine.model_copy(update=made_up)
        small = scenario.model_copy(update={"model": "small", "engine": engine})
        side = sides[HEALTHY]
        side = parse_label(f"{side.label}+{planted}") if planted else side
        side = replace(side, spec=replace(side.spec, flags=flags))
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


HEAD = """
[mutant.{name}]
mechanism = "slot lifetime"
target = ["v1.attention.backends.gdn_attn:GDNAttentionMetadataBuilder.build"]
by = "delta_nets.{name}"
resembles = "made up"
what = "{what}"
"""
FAULTS = {
    "late": "The slots that graphs read are those of the step before.",
    "shared": "The second row that decodes has the first one's slot.",
}
CODE = """
from dataclasses import replace


def late(original, tally):
    def build(builder, *args, **kwargs):
        read_by_graphs = builder.non_spec_state_indices_tensor
        before = read_by_graphs.clone()
        metadata = original(builder, *args, **kwargs)
        slots = metadata.non_spec_state_indices_tensor
        if slots is None or slots.data_ptr() != read_by_graphs.data_ptr():
            return metadata
        right = slots.clone()
        read_by_graphs.copy_(before)
        tally.count(changed=bool((slots != right).any()))
        return replace(metadata, non_spec_state_indices_tensor=right)

    return build


def shared(original, tally):
    def build(builder, *args, **kwargs):
        metadata = original(builder, *args, **kwargs)
        slots = metadata.non_spec_state_indices_tensor
        if slots is not None and not metadata.num_prefills and metadata.num_decodes > 1:
            tally.count(changed=bool(slots[1] != slots[0]))
            slots[1] = slots[0]
        return metadata

    return build
"""


@pytest.fixture
def faults(tmp_path, monkeypatch):
    """Faults of one's own, which the label of a build may plant."""
    folder = tmp_path / "mutants"
    folder.mkdir()
    tables = (HEAD.format(name=name, what=what) for name, what in FAULTS.items())
    (folder / "delta_nets.toml").write_text("".join(tables))
    (folder / "delta_nets.py").write_text(CODE)
    found = {"mutants": [folder], "fixes": []}
    monkeypatch.setattr("hybridwatch.scenario.own_folders._of_the_home", found.__getitem__)


def counts(measured):
    """The contracts of a trial, by their names without the family."""
    assert measured.unsupported == {}
    return {one.metric.partition(".")[2]: one.values[0] for one in measured.samples}


DELTA_NETS = (GATED_DELTA_NETS, "bfloat16", {"mamba-ssm-cache-dtype": "float32"})


def test_gated_delta_nets_are_replayed_and_watched(family):
    found = counts(family(*DELTA_NETS))
    assert {"slots_off_block_table", "states_off", "prefills_in_decode_graph"} <= found.keys()
    assert set(found.values()) == {0.0}


# Slow: an engine for each fault.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "broken"),
    [("late", {"slots_off_block_table"}), ("shared", {"slots_off_block_table", "states_off"})],
)
def test_wrong_slots_of_gated_delta_nets_break_contracts(faults, family, fault, broken):
    found = counts(family(*DELTA_NETS, planted=fault))
    assert {name for name, times in found.items() if times} >= broken
