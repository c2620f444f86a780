"""Make a tiny model of each family of hybrid models out of a seed, on CPU.

    PYTHONPATH=models/tiny-hybrid <engine python> models/families/make.py --output build/families

Shapes as small as the engine's kernels take them, weights made up and never trained. They are as
large as those of a trained model, and not as small as vLLM's own made-up weights are: with these a
layer's state decides which token comes next, and a wrong state is heard.
"""

import argparse
import math
from pathlib import Path

import torch
from recipe import tokenizer
from recipe.files import edit_json, make_readable
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

HIDDEN_SIZE = 64
IN_COMMON = {
    "vocab_size": tokenizer.VOCABULARY_SIZE,
    "pad_token_id": tokenizer.PAD,
    "bos_token_id": tokenizer.BOS,
    "eos_token_id": tokenizer.EOS,
    "hidden_size": HIDDEN_SIZE,
    "max_position_embeddings": tokenizer.MAX_LENGTH,
    "initializer_range": 1 / math.sqrt(HIDDEN_SIZE),
    "tie_word_embeddings": False,
}
ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}
FAMILIES: dict[str, dict[str, object]] = {
    "nemotron_h": {
        **ATTENTION,
        "layers_block_type": ["linear_attention", "mlp", "full_attention", "linear_attention"],
        "intermediate_size": 128,
        "mamba_num_heads": 4,
        "mamba_head_dim": 32,
        "ssm_state_size": 32,
        "n_groups": 2,
        "chunk_size": 64,
    },
    "falcon_h1": {
        **ATTENTION,
        "num_hidden_layers": 3,
        "intermediate_size": 128,
        "mamba_d_ssm": 128,
        "mamba_n_heads": 4,
        "mamba_d_head": 32,
        "mamba_d_state": 32,
        "mamba_chunk_size": 64,
    },
    "zamba2": {
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention"],
        "intermediate_size": 128,
        "n_mamba_heads": 4,
        "mamba_d_state": 32,
        "chunk_size": 64,
        "adapter_rank": 8,
        "tie_word_embeddings": True,
    },
    "mamba2": {
        "num_hidden_layers": 3,
        "num_heads": 4,
        "head_dim": 32,
        "state_size": 32,
        "n_groups": 1,
        "chunk_size": 64,
    },
    "lfm2": {
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 4,
        "layer_types": ["conv", "full_attention", "conv", "conv"],
        "intermediate_size": 128,
        "block_auto_adjust_ff_dim": False,
        "block_dim": HIDDEN_SIZE,
        "conv_dim": HIDDEN_SIZE,
        "tie_word_embeddings": True,
    },
    "jamba": {
        # A CPU's attention takes heads of 32, and here they share the hidden size.
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 4,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "num_experts": 1,
        "num_experts_per_tok": 1,
        "intermediate_size": 128,
        "mamba_d_state": 16,
        "mamba_dt_rank": 8,
    },
    "qwen3_next": {
        **ATTENTION,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
        # A token goes to all: chosen in bfloat16, some were others than in the oracle's float32.
        "num_experts": 2,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 64,
        "dtype": "bfloat16",  # the only type that vLLM's kernels for a CPU take here
    },
}
"""Name of each in transformers, with what tells it from the common shape."""

# Mamba's usual initial ranges: a memory so long that a wrong state is still felt much later.
TIME_STEP_RANGE = (0.003, 0.1)
DECAY_RANGE = (0.25, 1.75)


def main() -> None:
    """Write a folder for each family."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for family in FAMILIES:
        folder = arguments.output / f"tiny-{family.replace('_', '-')}"
        model = made_up(family, arguments.seed)
        save(model, folder)
        print(f"{folder}: {sum(one.numel() for one in model.parameters()):,} parameters")


def made_up(family: str, seed: int) -> PreTrainedModel:
    """Return a model of a family with seeded random weights."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **{**IN_COMMON, **FAMILIES[family]})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for module in model.modules():
        if hasattr(module, "A_log"):
            _let_remember(module)
    return model.to(getattr(torch, str(FAMILIES[family].get("dtype", "float32"))))


@torch.no_grad()
def _let_remember(layer: nn.Module) -> None:
    """Draw the steps and decays of a recurrent layer; Mamba1 adds its bias in a projection."""
    bias = layer.dt_bias if hasattr(layer, "dt_bias") else layer.dt_proj.bias
    shortest, longest = (math.log(step) for step in TIME_STEP_RANGE)
    time_step = torch.exp(torch.empty_like(bias).uniform_(shortest, longest))
    bias.copy_(time_step + torch.log(-torch.expm1(-time_step)))  # the inverse of softplus
    layer.A_log.copy_(torch.empty_like(layer.A_log).uniform_(*DECAY_RANGE).log())


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write weights, configuration and tokenizer as one folder that vLLM can load."""
    model.save_pretrained(folder)
    tokenizer.write_tokenizer(folder)
    edit_json(folder / "config.json", {"time_step_limit": None})  # JSON has no infinity
    make_readable(folder)


if __name__ == "__main__":
    main()
