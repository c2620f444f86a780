"""A small Llama as a draft: a language model of its own that knows nothing of its target."""

from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from drafting.look_back import look_back, token_size
from drafting.shape import draft_config, finish

HIDDEN_SIZE = 96
MLP_SIZE = 160
LAYERS = 2
COPY_GAIN = 5.0
SURE = 0.2  # Of its copies, at first: the last norm's weight, which the logits go with.


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
    """Return the model with seeded random weights that begins with copying."""
    torch.manual_seed(seed)
    model = LlamaForCausalLM(draft_config(HIDDEN_SIZE, MLP_SIZE, LAYERS))
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        size = token_size(HIDDEN_SIZE)
        embedding.normal_()
        embedding[:, size:] = 0
        embedding[:, -1] = 1
        model.model.norm.weight.fill_(SURE)
        answer = torch.zeros(HIDDEN_SIZE, HIDDEN_SIZE)
        answer[:size, :size] = COPY_GAIN * torch.eye(size)
    look_back(*model.model.layers, embedding, answer, model.model.rotary_emb.inv_freq)
    return model


def save_llama(model: LlamaForCausalLM, directory: Path) -> None:
    """Write weights, configuration and tokenizer as one directory that vLLM can load."""
    model.save_pretrained(directory)
    finish(directory)
