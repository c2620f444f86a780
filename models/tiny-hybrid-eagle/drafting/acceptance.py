"""Acceptance without an engine: how long drafts would be accepted on the target's own text."""

from collections.abc import Sequence

import torch
from transformers import GraniteMoeHybridForCausalLM

from drafting.corpus import Row, to_batch
from drafting.distil import Draft, features_of

ROWS_AT_ONCE = 16


@torch.no_grad()
def mean_acceptance_length(
    draft: Draft, target: GraniteMoeHybridForCausalLM, rows: Sequence[Row], steps: int
) -> float:
    """Return accepted drafts + 1 for each step of verification, vLLM's mean acceptance length.

    Args:
        draft: What drafts, greedily.
        target: What verifies, greedily; it has said the rows.
        rows: From `corpus.answered`. Counted is the text from the first answered token on.
        steps: Drafts for each step of verification.
    """
    verified, gained = 0, 0
    for start in range(0, len(rows), ROWS_AT_ONCE):
        group = rows[start : start + ROWS_AT_ONCE]
        tokens = to_batch(group).tokens
        accepted = accepted_drafts(draft, tokens, features_of(target, tokens), steps).tolist()
        for (row, asked), lengths in zip(group, accepted, strict=True):
            place = asked - 1  # the prefill has said the first token
            while place + steps + 1 < len(row):
                verified += 1
                gained += lengths[place] + 1
                place += lengths[place] + 1
    return gained / verified


def accepted_drafts(
    draft: Draft, tokens: torch.Tensor, features: torch.Tensor, steps: int
) -> torch.Tensor:
    """Return how many drafts in a row agree with the text, from each place: (rows, places)."""
    right = [
        logits.argmax(-1) == tokens[:, step + 2 : step + 2 + logits.shape[1]]
        for step, logits in enumerate(draft.logits(tokens, features, steps))
    ]
    return torch.stack(right).long().cumprod(0).sum(0)
