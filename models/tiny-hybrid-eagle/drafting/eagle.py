"""The Eagle head as a draft of its target: files, weights, and the target's matrices around it."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import GraniteMoeHybridForCausalLM, LlamaConfig

from drafting.head import EagleHead
from drafting.look_back import look_back, token_size
from drafting.shape import draft_config, finish

MLP_SIZE = 128
TEXT = [ord("\n"), *range(ord(" "), ord("~") + 1)]
TOKEN_SCALE, FEATURE_SCALE = 3.0, 0.05  # At first; features are eight times as long as embeddings.
COPY_GAIN = 12.0
LAYERS = 2  # One binds a token to the one before it; the other looks up what followed such a pair.


class EagleDraft:
    """A head between its target's embedding and its target's output matrix.

    Attributes:
        trained: The head.
        target: Whose matrices it uses.
    """

    def __init__(self, head: EagleHead, target: GraniteMoeHybridForCausalLM) -> None:
        self.trained = head
        self.target = target

    def logits(
        self, tokens: torch.Tensor, features: torch.Tensor, steps: int
    ) -> list[torch.Tensor]:
        """See `distil.Draft`."""
        embedded = self.target.get_input_embeddings()(tokens)
        known = features[:, : tokens.shape[1] - 1 - steps]
        return [self.target.lm_head(foreseen) for foreseen in self.trained(known, embedded, steps)]


def new_head(target: GraniteMoeHybridForCausalLM, seed: int) -> EagleHead:
    """Return a head for the target with seeded random weights that begins with copying."""
    torch.manual_seed(seed)
    head = EagleHead(draft_config(target.config.hidden_size, MLP_SIZE, LAYERS))
    for values in head.parameters():
        if values.dim() == 2:
            nn.init.normal_(values, std=head.config.initializer_range)
    _begin_with_copying(head, target.get_input_embeddings().weight)
    return head


@torch.no_grad()
def _begin_with_copying(head: EagleHead, embedding: torch.Tensor) -> None:
    """Divide the hidden numbers as `look_back` needs them: a part of the embedding, and a one."""
    hidden = embedding.shape[1]
    size = token_size(hidden)
    part = torch.linalg.qr(torch.randn(hidden, hidden)).Q[:size]
    text = embedding[TEXT]
    one = torch.linalg.lstsq(text, torch.ones(len(text), 1)).solution[:, 0]
    joint = head.fc.weight
    joint[:, :hidden] = 0
    joint[:size, :hidden] = TOKEN_SCALE * part
    joint[-1, :hidden] = TOKEN_SCALE * one
    joint[:, hidden:] *= FEATURE_SCALE
    answer = torch.zeros(hidden, hidden)
    answer[:, :size] = COPY_GAIN * part.T
    tokens = embedding @ joint[:, :hidden].T
    look_back(*head.layers, tokens, answer, head.rotary.inv_freq)


def save_head(head: EagleHead, directory: Path) -> None:
    """Write weights, configuration and tokenizer as one directory that vLLM can load."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: values.contiguous() for name, values in head.state_dict().items()}
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    head.config.save_pretrained(directory)
    finish(directory)


def load_head(directory: Path) -> EagleHead:
    """Read a head back."""
    head = EagleHead(LlamaConfig.from_pretrained(directory, attn_implementation="sdpa"))
    head.load_state_dict(load_file(directory / "model.safetensors"))
    return head
