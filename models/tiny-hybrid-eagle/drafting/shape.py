"""What drafts have in common: a configuration of Llama layers that fit the target; its files."""

from pathlib import Path

from recipe import tokenizer
from recipe.files import edit_json, make_readable
from transformers import LlamaConfig

HEADS, HEAD_SIZE = 4, 32  # the target's: pages of all attention caches are then equally large

ROPE_THETA = 1e6  # Most of a head's numbers hardly turn within a text: they compare content.


def draft_config(hidden_size: int, mlp_size: int, layers: int) -> LlamaConfig:
    """Return a Llama configuration with the target's vocabulary, length and attention heads."""
    return LlamaConfig(
        architectures=["LlamaForCausalLM"],  # For an Eagle head, vLLM puts "Eagle" in front of it.
        vocab_size=tokenizer.VOCABULARY_SIZE,
        hidden_size=hidden_size,
        intermediate_size=mlp_size,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD_SIZE,
        max_position_embeddings=tokenizer.MAX_LENGTH,
        rms_norm_eps=1e-6,
        initializer_range=0.05,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        tie_word_embeddings=True,
        pad_token_id=tokenizer.PAD,
        bos_token_id=tokenizer.BOS,
        eos_token_id=tokenizer.EOS,
        dtype="float32",
        attn_implementation="sdpa",
    )


def finish(directory: Path) -> None:
    """Complete a directory of weights and configuration, so that every vLLM release loads it.

    transformers 5 writes the base of the rotary embedding to a newer place; the older one is filled
    too.
    """
    edit_json(directory / "config.json", {"rope_theta": ROPE_THETA})
    tokenizer.write_tokenizer(directory)
    make_readable(directory)
