"""A small Llama as a draft: a language model of its own that knows nothing of its target."""

from pathlib import Path

import torch
from recipe import tokenizer
from recipe.files import make_readable
from transformers import LlamaForCausalLM

from drafting.shape import draft_config

HIDDEN_SIZE = 96
MLP_SIZE = 160
LAYERS = 2


class LlamaDraft:
    """A language model that drafts from the text alone.

    Attributes:
        trained: The model.
    """

    def __init__(self, model: LlamaForCausalLM) -> None:
        self.trained = model

    def logits(
        self,
        tokens: torch.Tensor,
        features: torch.Tensor,  # noqa: ARG002 - the target's are of no use to it
        steps: int,
    ) -> list[torch.Tensor]:
        """See `distil.Draft`."""
        every = self.trained(input_ids=tokens, use_cache=False).logits
        places = tokens.shape[1] - 1 - steps
        return [every[:, step + 1 : step + 1 + places] for step in range(steps)]


def new_llama(seed: int) -> LlamaForCausalLM:
    """Return the model with seeded random weights."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(draft_config(HIDDEN_SIZE, MLP_SIZE, LAYERS))


def save_llama(model: LlamaForCausalLM, directory: Path) -> None:
    """Write weights, configuration and tokenizer as one directory that vLLM can load."""
    model.save_pretrained(directory)
    tokenizer.write_tokenizer(directory)
    make_readable(directory)
