import torch
from vllm._custom_ops import selective_state_update_cpu

torch.manual_seed(0)
TOKENS, HEADS, CHANNELS, ENTRIES = 3, 1, 2, 8
cache = torch.randn(4, HEADS, CHANNELS, ENTRIES)  # block 0 is the null block
x, b = torch.randn(TOKENS, HEADS, CHANNELS), torch.randn(TOKENS, 1, ENTRIES)
dt, a = torch.rand(TOKENS, HEADS), -torch.rand(HEADS)
states, state = [], cache[1].clone()
for t in range(TOKENS):  # what blocks 1, 2 and 3 should hold
    step = dt[t].view(HEADS, 1, 1)
    state = state * torch.exp(step * a.view(HEADS, 1, 1)) + step * x[t, :, :, None] * b[t, :, None]
    states.append(state)
blocks = torch.tensor([[1, 2, 3]], dtype=torch.int32)
zeros = torch.zeros(HEADS, 1).expand(HEADS, CHANNELS)
selective_state_update_cpu(
    cache, x, dt[:, :, None].expand(-1, -1, CHANNELS),
    a.view(HEADS, 1, 1).expand(HEADS, CHANNELS, ENTRIES), b, b, zeros, None, zeros, False,
    blocks, blocks, 0, torch.empty_like(x),
    torch.tensor([1], dtype=torch.int32),  # accepted tokens
    torch.tensor([0, TOKENS], dtype=torch.int32),  # where the request's tokens begin and end
)  # fmt: skip
for block in (1, 2, 3):
    held = [t + 1 for t in range(TOKENS) if torch.allclose(cache[block], states[t], atol=1e-5)]
    print(f"block {block}: expected the state after token {block}, found that after {held}")
