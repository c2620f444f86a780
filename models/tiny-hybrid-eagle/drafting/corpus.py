"""What drafts learn from: prompts of every kind that an engine is asked, with the target's answers.

A draft has to foresee what its target says next, right or wrong, so every row is a prompt and what
the target itself goes on to say, greedily and past the end of an answer, as load tests ask it to.
No evaluation prompt is ever part of a corpus.
"""

import random
from collections.abc import Sequence

import torch
from recipe.batches import EVALUATION_PROMPTS, Batch
from recipe.tokenizer import PAD
from transformers import GraniteMoeHybridForCausalLM

from hybridwatch.scenarios import expansion
from hybridwatch_lab.embedded_tasks import (
    recall_documents,
    shared_recall_documents,
    word_problem_documents,
)

Row = tuple[list[int], int]  # tokens, and how many of them are the prompt

KINDS = ("recall", "shared_recall", "word_problems", "workload_recall", "letters", "noise")
ANSWER_TOKENS = 64
TRAINING_SEED, HELD_OUT_SEED = 20_001, 990_001  # Neither is an evaluation's.
PROMPT_WEIGHT = 0.03  # As in the target's training: most of a prompt cannot be foretold.
ROWS_AT_ONCE = 128  # of a generation
SHORTEST, LONGEST = 8, 200  # tokens of the prompts that no generator of documents makes


def prompts(kind: str, count: int, seed: int) -> list[list[int]]:
    """Return prompts of a kind, without any that an evaluation asks."""
    if kind in _DOCUMENTS:
        drawn = [document.prompt for document in _DOCUMENTS[kind](count, seed)]
        return [
            list(prompt.encode("ascii")) for prompt in drawn if prompt not in EVALUATION_PROMPTS
        ]
    rng = random.Random(seed)
    return [_MADE_UP[kind](rng, rng.randint(SHORTEST, LONGEST)) for _ in range(count)]


def corpus(
    target: GraniteMoeHybridForCausalLM, rows_of_a_kind: int, seed: int
) -> dict[str, list[Row]]:
    """Return rows of every kind. To be called before `scan.install`: that scan leaves no state."""
    return {
        kind: answered(target, prompts(kind, rows_of_a_kind, seed), ANSWER_TOKENS) for kind in KINDS
    }


def answered(
    target: GraniteMoeHybridForCausalLM, asked: Sequence[list[int]], answer_tokens: int
) -> list[Row]:
    """Return the prompts with the target's greedy continuation, in the order of their lengths."""
    rows: list[Row] = []
    waiting = sorted(asked, key=len)
    for start in range(0, len(waiting), ROWS_AT_ONCE):
        group = waiting[start : start + ROWS_AT_ONCE]
        longest = len(group[-1])
        padding = [longest - len(prompt) for prompt in group]
        padded = [[PAD] * pads + prompt for pads, prompt in zip(padding, group, strict=True)]
        tokens = torch.tensor(padded)
        said = target.generate(
            tokens,
            attention_mask=(torch.arange(longest) >= torch.tensor(padding)[:, None]).long(),
            do_sample=False,
            min_new_tokens=answer_tokens,
            max_new_tokens=answer_tokens,
        )
        for pads, prompt, row in zip(padding, group, said.tolist(), strict=True):
            rows.append((row[pads:], len(prompt)))
    return rows


def to_batch(rows: Sequence[Row]) -> Batch:
    """Return rows as tensors, padded at the end, with all weight on what the target said."""
    length = max(len(tokens) for tokens, _ in rows)
    tokens = torch.full((len(rows), length), PAD)
    weights = torch.zeros(len(rows), length)
    for index, (row, asked) in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row)
        weights[index, :asked] = PROMPT_WEIGHT
        weights[index, asked : len(row)] = 1.0
    return Batch(tokens, weights)


def _workload_recall(rng: random.Random, tokens: int) -> list[int]:
    listing = expansion.listing(rng.random, tokens)
    return [
        *listing.tokens,
        *expansion.question(rng.random, listing, rng.randint(expansion.QUESTION, 40)),
    ]


def _letters(rng: random.Random, tokens: int) -> list[int]:
    return list(expansion.random_text(rng.random, tokens))


def _noise(rng: random.Random, tokens: int) -> list[int]:
    """Random bytes as a load client sends them: as text, in which most are not valid."""
    return list(rng.randbytes(tokens).decode("utf-8", errors="replace").encode())[:tokens]


_DOCUMENTS = {
    "recall": recall_documents,
    "shared_recall": shared_recall_documents,
    "word_problems": word_problem_documents,
}
_MADE_UP = {"workload_recall": _workload_recall, "letters": _letters, "noise": _noise}
