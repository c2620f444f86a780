"""The Eagle head: Llama layers that foresee the target's next feature, and so its next token.

EAGLE (Li et al. 2024, arXiv 2401.15077). A feature is the target's last hidden state after its
final norm, which is what vLLM hands over. A step joins a feature with the embedding of the token
that followed it and gives the feature after that; the next step goes on from the head's own one.
"""

import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding


class EagleHead(nn.Module):
    """The weights by the names that vLLM's `llama_eagle.py` loads.

    Embedding and output matrix are the target's own and no part of it.

    Attributes:
        fc: Joins embedding and feature, in this order.
        layers: The first has no norm at its entrance.
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        layers = [LlamaDecoderLayer(config, index) for index in range(config.num_hidden_layers)]
        layers[0].input_layernorm = nn.Identity()
        self.layers = nn.ModuleList(layers)
        self.rotary = LlamaRotaryEmbedding(config)

    def forward(
        self, features: torch.Tensor, embedded: torch.Tensor, steps: int
    ) -> list[torch.Tensor]:
        """Draft from every place of a text at once, along what the text really says.

        What an engine drafts counts up to its first wrong token, so drafts that follow the text
        show its acceptance too. Keys and values of all steps stand side by side: a step sees the
        target's features up to its place, and of its own those of this place alone.

        Args:
            features: The target's: (rows, places, hidden size).
            embedded: The text as embeddings: (rows, at least places + steps, hidden size).
            steps: Drafts in a row.

        Returns:
            For each step the foreseen features, (rows, places, hidden size): at place `p`, step
            `k` (from 0) foresees the feature of token `p + k + 1`.
        """
        places = features.shape[1]
        seen = torch.full((places, places), -torch.inf).triu(1)
        itself = torch.full((places, places), -torch.inf).fill_diagonal_(0.0)
        cache, foreseen = DynamicCache(), []
        for step in range(steps):
            following = embedded[:, step + 1 : step + 1 + places]
            features = self.fc(torch.cat([following, features], dim=-1))
            turns = self.rotary(features, torch.arange(step, step + places)[None])
            for layer in self.layers:
                features = layer(
                    features,
                    attention_mask=seen[None, None],
                    past_key_values=cache,
                    position_embeddings=turns,
                )
            foreseen.append(features)
            seen = torch.cat([seen, itself], dim=-1)
        return foreseen
