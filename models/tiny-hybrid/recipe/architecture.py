"""The architecture: GraniteMoeHybrid without experts, three Mamba2 layers and one of attention.

Under a million parameters: small enough to train on two cores in under an hour, and of a family
that vLLM serves on CPU and on CUDA.
"""

import math
from pathlib import Path

import torch
from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM
from transformers.models.granitemoehybrid.modeling_granitemoehybrid import (
    GraniteMoeHybridMambaLayer,
)

from recipe import tokenizer
from recipe.files import edit_json, make_readable

LAYERS = ("mamba", "attention", "mamba", "mamba")
HIDDEN_SIZE = 128
ATTENTION_HEADS = 4
MAMBA_HEADS = 8
MAMBA_EXPAND = 2
CHUNK_SIZE = 64

# Mamba's usual initial ranges: a memory so long that a damaged state is still felt much later.
TIME_STEP_RANGE = (0.003, 0.1)
DECAY_RANGE = (0.25, 1.75)


def new_model(
    seed: int, config: GraniteMoeHybridConfig | None = None
) -> GraniteMoeHybridForCausalLM:
    """Return the model, or one of another configuration, with seeded random weights."""
    torch.manual_seed(seed)
    model = GraniteMoeHybridForCausalLM(config or default_config())
    for layer in model.modules():
        if isinstance(layer, GraniteMoeHybridMambaLayer):
            _initialise_mamba(layer)
    return model


def save_model(model: GraniteMoeHybridForCausalLM, directory: Path) -> None:
    """Write weights, configuration and tokenizer as one directory that vLLM can load.

    transformers 5 writes some newer names. The older ones are read by every release, so they are
    put in their place, and vLLM releases that come with an older transformers load the model too.
    """
    model.save_pretrained(directory)
    tokenizer.write_tokenizer(directory)
    attention = {"full_attention", "attention"}
    layers = ["attention" if kind in attention else "mamba" for kind in model.config.layer_types]
    edit_json(directory / "config.json", {"layer_types": layers, "time_step_limit": None})
    make_readable(directory)


def default_config() -> GraniteMoeHybridConfig:
    """Return the configuration of the tiny hybrid model."""
    return GraniteMoeHybridConfig(
        vocab_size=tokenizer.VOCABULARY_SIZE,
        hidden_size=HIDDEN_SIZE,
        shared_intermediate_size=2 * HIDDEN_SIZE,
        intermediate_size=2 * HIDDEN_SIZE,
        num_local_experts=0,
        num_experts_per_tok=0,
        num_hidden_layers=len(LAYERS),
        layer_types=list(LAYERS),
        num_attention_heads=ATTENTION_HEADS,
        num_key_value_heads=ATTENTION_HEADS,
        attention_multiplier=1 / math.sqrt(HIDDEN_SIZE // ATTENTION_HEADS),
        position_embedding_type="nope",
        mamba_n_heads=MAMBA_HEADS,
        mamba_d_head=MAMBA_EXPAND * HIDDEN_SIZE // MAMBA_HEADS,
        mamba_expand=MAMBA_EXPAND,
        mamba_d_state=64,
        mamba_n_groups=1,
        mamba_d_conv=4,
        mamba_chunk_size=CHUNK_SIZE,
        tie_word_embeddings=True,
        initializer_range=0.05,
        max_position_embeddings=tokenizer.MAX_LENGTH,
        pad_token_id=tokenizer.PAD,
        bos_token_id=tokenizer.BOS,
        eos_token_id=tokenizer.EOS,
        dtype="float32",
    )


@torch.no_grad()
def _initialise_mamba(layer: GraniteMoeHybridMambaLayer) -> None:
    shortest, longest = (math.log(step) for step in TIME_STEP_RANGE)
    time_step = torch.exp(torch.empty(MAMBA_HEADS).uniform_(shortest, longest))
    layer.dt_bias.copy_(time_step + torch.log(-torch.expm1(-time_step)))  # The inverse of softplus.
    layer.A_log.copy_(torch.empty(MAMBA_HEADS).uniform_(*DECAY_RANGE).log())
