"""A start at copying: what followed the last three tokens when they were there before?

Most of what a draft of the tiny hybrid model has to foresee is copied, and to copy is what two
layers of attention are slowest to find. So they begin with it. In the first layer, one head each
tells every place the token one, two and three before it; in the second, all heads look for places
that came after the same three tokens. The hidden numbers are divided for that: tokens lie in the
first ones, what is told in those behind them, and the last number is the same for every token.
"""

import math

import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

LAGS = (1, 2, 3)
WIDTH = 16  # hidden numbers for each lag's token
FAST_PAIRS = 4  # of a head's numbers: they turn so fast that neighbours differ
SLOW_PAIRS = 10  # these hardly turn within a text
NEIGHBOUR_SCORE = 80.0  # nats for the place looked for, and a few less for those beside it
MATCH_SCORE = 30.0


def token_size(hidden_size: int) -> int:
    """Return how many of the hidden numbers are for tokens."""
    return hidden_size - len(LAGS) * WIDTH - 1


@torch.no_grad()
def look_back(
    first: LlamaDecoderLayer,
    second: LlamaDecoderLayer,
    tokens: torch.Tensor,
    answer: torch.Tensor,
    frequencies: torch.Tensor,
) -> None:
    """Set the attention of two layers.

    Args:
        first: The lower layer.
        second: The upper layer.
        tokens: How each token looks to the first layer's attention, divided as said above:
            (vocabulary, hidden size).
        answer: Turns a token as it looks there into what the layers shall say for it, as loudly as
            they shall: (hidden size, hidden size).
        frequencies: How far each pair of a head's numbers turns from place to place, in radians.
    """
    size, hidden = first.self_attn.head_dim, tokens.shape[1]
    own = torch.linalg.svd(tokens[:, : token_size(hidden)], full_matrices=False).Vh[:WIDTH]
    now = [nn.functional.pad(own, (0, hidden - own.shape[1]))]
    for lag in LAGS:
        told = torch.zeros(WIDTH, hidden)
        begin = token_size(hidden) + (lag - 1) * WIDTH
        told[:, begin : begin + WIDTH] = torch.eye(WIDTH)
        _tell(first, lag, now[0], told, tokens[:, -1].mean(), frequencies)
        now.append(told)
    seen = (tokens @ now[0].T).square().sum(-1).mean()
    slow = torch.arange(size) % (size // 2) >= size // 2 - SLOW_PAIRS
    attention = second.self_attn
    for head in range(attention.q_proj.weight.shape[0] // size):
        rows = slice(head * size, (head + 1) * size)
        mixed = torch.randn(len(LAGS), size, WIDTH) * slow[:, None]
        mixed *= (MATCH_SCORE * math.sqrt(size) / (len(LAGS) * 2 * SLOW_PAIRS * seen)).sqrt()
        attention.q_proj.weight[rows] = sum(mixed[lag - 1] @ now[lag - 1] for lag in LAGS)
        attention.k_proj.weight[rows] = sum(mixed[lag - 1] @ now[lag] for lag in LAGS)
    nn.init.orthogonal_(attention.v_proj.weight)
    attention.o_proj.weight.copy_(answer @ attention.v_proj.weight.T)


def _tell(
    layer: LlamaDecoderLayer,
    lag: int,
    read: torch.Tensor,
    told: torch.Tensor,
    constant: torch.Tensor,
    frequencies: torch.Tensor,
) -> None:
    """Let one head of the layer read the token at a lag and write it where it shall be told."""
    attention, size = layer.self_attn, layer.self_attn.head_dim
    rows = slice((lag - 1) * size, lag * size)
    strength = math.sqrt(NEIGHBOUR_SCORE * math.sqrt(size) / FAST_PAIRS) / constant
    turn = frequencies[:FAST_PAIRS] * lag
    query, key = torch.zeros(2, size)
    query[:FAST_PAIRS] = 1.0
    key[:FAST_PAIRS], key[size // 2 : size // 2 + FAST_PAIRS] = turn.cos(), turn.sin()
    attention.q_proj.weight[rows] = 0.0
    attention.q_proj.weight[rows, -1] = strength * query
    attention.k_proj.weight[rows] = 0.0
    attention.k_proj.weight[rows, -1] = strength * key
    attention.v_proj.weight[rows] = 0.0
    attention.v_proj.weight[rows][:WIDTH] = read
    attention.o_proj.weight[:, rows] = 0.0
    attention.o_proj.weight[:, rows][:, :WIDTH] = told.T
