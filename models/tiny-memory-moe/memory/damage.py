"""Answers of transformers when the Mamba layers have read something else than attention has.

That is what an engine does to a request whose cached Mamba states are stale, another's or empty
while its attention cache is as it should be; here it is done by hand, at the end of a block.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import DynamicCache, GraniteMoeHybridForCausalLM

JUNK = "xq0zJ#vw~Kp%5f&y"
OTHER = "T1=bcd\nV8=fghj\nthe two boats wait by stone steps\n" + "no bell rings until late\n" * 4

# What the Mamba layers have read in place of a block's text; the first change is none.
MISREADINGS: dict[str, Callable[[str], str]] = {
    "as_it_should_be": lambda block: block,
    "16_junk_tokens_more": lambda block: block + JUNK,
    "1_junk_token_more": lambda block: block + JUNK[0],
    "16_zero_tokens_more": lambda block: block + 16 * "\0",
    "1_zero_token_more": lambda block: block + "\0",
    "last_16_tokens_twice": lambda block: block + block[-16:],
    "last_token_twice": lambda block: block + block[-1],
    "last_16_tokens_never": lambda block: block[:-16],
    "last_token_never": lambda block: block[:-1],
    "another_listing": lambda block: OTHER[: len(block)],
    "nothing": lambda _block: "",
}


def answers_after(
    model: GraniteMoeHybridForCausalLM,
    misread: Callable[[str], str],
    prompts: Sequence[str],
    length: int,
    max_new_tokens: int,
) -> list[str]:
    """Return greedy answers to prompts of whose first `length` tokens Mamba has read another text.

    The rest of each prompt is read by all layers, after the caches were put together.
    """
    answers = dict.fromkeys(prompts, "")
    for size in {len(prompt) for prompt in prompts}:
        group = [prompt for prompt in answers if len(prompt) == size]
        blocks = [prompt[:length] for prompt in group]
        cache = _cache_after(model, blocks)
        _put_mamba_states(model, cache, [misread(block) for block in blocks])
        unread = [prompt[length:] for prompt in group]
        for _ in range(max_new_tokens):
            logits = model(input_ids=_tokens(unread), past_key_values=cache).logits
            unread = [chr(token) for token in logits[:, -1].argmax(-1).tolist()]
            for prompt, said in zip(group, unread, strict=True):
                answers[prompt] += said
    return [answers[prompt].split("\n")[0] for prompt in prompts]


@contextmanager
def experts_off(model: GraniteMoeHybridForCausalLM) -> Iterator[None]:
    """Let every layer's experts give nothing."""

    def nothing(_part: Any, _inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(output)

    layers = [layer for layer in model.model.layers if layer.has_experts]
    handles = [layer.block_sparse_moe.register_forward_hook(nothing) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _put_mamba_states(
    model: GraniteMoeHybridForCausalLM, cache: DynamicCache, texts: Sequence[str]
) -> None:
    """Let the Mamba layers of a cache have read texts of one length, or nothing."""
    source = _cache_after(model, [text or "\n" for text in texts])
    for index, layer in enumerate(model.model.layers):
        if layer.mamba is None:
            continue
        states = cache.layers[index] = source.layers[index]
        if not all(texts):
            states.reset()


def _cache_after(model: GraniteMoeHybridForCausalLM, texts: Sequence[str]) -> DynamicCache:
    cache = DynamicCache(config=model.config)
    model(input_ids=_tokens(texts), past_key_values=cache)
    return cache


def _tokens(texts: Sequence[str]) -> torch.Tensor:
    return torch.tensor([list(text.encode("latin-1")) for text in texts])
