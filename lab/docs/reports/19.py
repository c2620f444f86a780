import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

TOKENS, HEADS, ENTRIES = 4, 2, 64
torch.manual_seed(0)
with set_current_vllm_config(VllmConfig()):
    rope = RotaryEmbedding(ENTRIES, ENTRIES, 128, 10000.0, True, torch.float32)
positions = torch.arange(1, TOKENS + 1)
query, key = torch.randn(TOKENS, HEADS, ENTRIES), torch.randn(TOKENS, HEADS, ENTRIES)
right, _ = rope.forward_native(positions, query.clone(), key.clone())
apart, _ = rope.forward_cpu(positions, query.clone(), key.clone())
flat, _ = rope.forward_cpu(positions, query.clone().flatten(1), key.clone().flatten(1))
for name, found in {"heads in one row": flat.view_as(right), "heads apart": apart}.items():
    same = torch.isclose(found, right, atol=1e-5).all(-1).tolist()
    print(f"{name}: equal to forward_native, by token and head: {same}")
print("left as it was, by token:", (apart == query).flatten(1).all(1).tolist())
