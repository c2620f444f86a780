"""The configurations in ``models/configs/``: whole, used, and fit for prompts of bytes."""

import json

import pytest

from hybridwatch.scenarios.load import find
from tests.shipped import ROOT

CONFIGS = ROOT / "models" / "configs"
NAMES = sorted(path.parent.name for path in CONFIGS.glob("*/config.json"))
MADE_UP = [s for s in find(ROOT / "scenarios", ()) if s.engine.load_format == "dummy"]


def test_every_configuration_is_some_scenarios_and_every_scenario_has_its():
    assert {scenario.model for scenario in MADE_UP} == set(NAMES)
    readme = (CONFIGS / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in readme for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_layers_are_counted_alike_and_heads_fit(name):
    config = json.loads((CONFIGS / name / "config.json").read_text(encoding="utf-8"))
    for layers in ("layer_types", "hybrid_override_pattern"):
        assert (
            len(config.get(layers, "-" * config["num_hidden_layers"]))
            == (config["num_hidden_layers"])
        )
    assert config["num_attention_heads"] % config["num_key_value_heads"] == 0
    if "mamba_d_ssm" in config:
        assert config["mamba_n_heads"] * config["mamba_d_head"] == config["mamba_d_ssm"]
    if config["model_type"] == "granitemoehybrid":
        inner = config["mamba_expand"] * config["hidden_size"]
        assert config["mamba_n_heads"] * config["mamba_d_head"] == inner


@pytest.mark.parametrize("scenario", MADE_UP, ids=lambda scenario: scenario.id)
def test_prompts_of_bytes_and_the_longest_text_are_in_the_model(scenario):
    config = json.loads((CONFIGS / scenario.model / "config.json").read_text(encoding="utf-8"))
    assert config["vocab_size"] > 259, "the tokens of models/tiny-hybrid"
    assert config["max_position_embeddings"] >= scenario.engine.max_model_len
    assert config["dtype"] == scenario.engine.dtype
