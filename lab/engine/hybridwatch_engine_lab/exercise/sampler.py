"""What a CPU engine's sampler draws for a row with a seed beside one without."""

from types import SimpleNamespace
from typing import Any, Final

_VOCABULARY: Final = 1_000
_DRAWS: Final = 8
_SEED: Final = 7


def seed_beside_others() -> dict[str, Any]:
    """Draw from flat logits again and again, the first row with the same seed each time."""
    import torch

    # The sampler compiles a function for rows without seeds; what it draws matters here alone.
    with torch.compiler.set_stance("force_eager"):
        drawn = [_draw() for _ in range(_DRAWS)]
    return {
        name: len({tokens[row] for tokens in drawn}) == 1
        for row, name in enumerate(("seeded_row_repeats", "other_row_repeats"))
    }


def _draw() -> list[int]:
    import torch
    from vllm.v1.sample.sampler import Sampler

    sampler = Sampler()
    sampler.topk_topp_sampler.forward = sampler.topk_topp_sampler.forward_cpu
    metadata = SimpleNamespace(
        all_greedy=False,
        all_random=True,
        temperature=torch.ones(2),
        logitsprocs=SimpleNamespace(argmax_invariant=[]),
        generators={0: torch.Generator().manual_seed(_SEED)},
        top_k=None,
        top_p=None,
        max_num_logprobs=None,
        logprob_token_ids=None,
    )
    tokens, _ = sampler.sample(torch.zeros(2, _VOCABULARY), metadata)
    drawn: list[int] = tokens.tolist()
    return drawn
