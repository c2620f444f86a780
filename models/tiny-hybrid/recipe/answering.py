"""Greedy answers from transformers: prompts of equal length go together, so none is padded."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase


def greedy_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    max_new_tokens: int,
) -> list[str]:
    """Return what the model says after each prompt, up to but without the first newline."""
    (newline,) = tokenizer.encode("\n")
    by_length = defaultdict(list)
    for index, prompt in enumerate(prompts):
        by_length[len(tokenizer.encode(prompt))].append(index)
    answers = [""] * len(prompts)
    for length, indices in by_length.items():
        tokens = torch.tensor([tokenizer.encode(prompts[index]) for index in indices])
        generated = model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            do_sample=False,
            max_new_tokens=max_new_tokens,
            eos_token_id=newline,
        )
        for index, answer in zip(indices, generated[:, length:].tolist(), strict=True):
            answers[index] = tokenizer.decode(answer).split("\n")[0]
    return answers
