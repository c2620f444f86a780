"""Distillation: a draft learns to foresee the target's own distribution over each next token."""

import json
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from recipe.batches import Batch
from recipe.optimization import new_optimizers, set_rates, share_of_peak
from torch import nn
from transformers import GraniteMoeHybridForCausalLM

from drafting.corpus import Row, to_batch

WARM_UP = 30
LOG_EVERY = 50
TOKENS_AT_ONCE = 3000


class Draft(Protocol):
    """What drafts from a text; weights are those of `trained`."""

    trained: nn.Module

    def logits(
        self, tokens: torch.Tensor, features: torch.Tensor, steps: int
    ) -> list[torch.Tensor]:
        """Draft from every place of a text, each step given that those before it were right.

        Args:
            tokens: (rows, length).
            features: The target's, of each token: (rows, length, hidden size).
            steps: Drafts in a row.

        Returns:
            For each step (rows, length - 1 - steps, vocabulary): at place `p`, step `k` (from 0)
            has seen the tokens up to `p + k + 1` and foresees the one after.
        """
        ...


@dataclass(frozen=True, slots=True)
class Phase:
    """One course of training.

    Attributes:
        steps: How many.
        rate: The peak learning rate, as a share of the optimisers' peak rates.
        drafts: In a row, all trained together.
        seed: Of the order of the rows.
    """

    steps: int
    rate: float
    drafts: int
    seed: int


def distil(
    draft: Draft, target: GraniteMoeHybridForCausalLM, rows: Sequence[Row], phase: Phase
) -> None:
    """Train the draft on rows of the target's text."""
    optimizers = new_optimizers(draft.trained)
    started, smooth = time.monotonic(), 0.0
    for step, batch in enumerate(_batches(rows, phase), start=1):
        set_rates(optimizers, phase.rate * share_of_peak(step, phase.steps, WARM_UP))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = _loss(draft, target, batch, phase.drafts)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(draft.trained.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        smooth += (loss.item() - smooth) / min(step, LOG_EVERY)
        if step % LOG_EVERY == 0:
            _log(step=step, seconds=round(time.monotonic() - started), loss=round(smooth, 4))


@torch.no_grad()
def features_of(target: GraniteMoeHybridForCausalLM, tokens: torch.Tensor) -> torch.Tensor:
    """Return the target's last hidden states, after its final norm."""
    return target.model(input_ids=tokens, use_cache=False).last_hidden_state


def _loss(
    draft: Draft, target: GraniteMoeHybridForCausalLM, batch: Batch, drafts: int
) -> torch.Tensor:
    """Return the weighted cross-entropy of all draft steps against the target's distribution."""
    features = features_of(target, batch.tokens)
    with torch.no_grad():
        wanted = target.lm_head(features).softmax(-1)
    total, weight = torch.zeros(()), torch.zeros(())
    for step, logits in enumerate(draft.logits(batch.tokens, features, drafts)):
        places = logits.shape[1]
        losses = -(wanted[:, step + 1 : step + 1 + places] * logits.log_softmax(-1)).sum(-1)
        weights = batch.weights[:, step + 2 : step + 2 + places]
        total, weight = total + (losses * weights).sum(), weight + weights.sum()
    return total / weight


def _batches(rows: Sequence[Row], phase: Phase) -> Iterable[Batch]:
    """Yield a batch a step: rows of similar length together, in an order drawn again each round."""
    rng = random.Random(phase.seed)
    groups = _groups(rows)
    order: list[int] = []
    for _ in range(phase.steps):
        if not order:
            order = rng.sample(range(len(groups)), len(groups))
        yield to_batch(groups[order.pop()])


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    groups: list[list[Row]] = [[]]
    for row in sorted(rows, key=lambda row: len(row[0])):
        if (len(groups[-1]) + 1) * len(row[0]) > TOKENS_AT_ONCE:
            groups.append([])
        groups[-1].append(row)
    return groups


def _log(**entry: object) -> None:
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()
