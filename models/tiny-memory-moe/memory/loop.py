"""The training loop: phases of steps, a curriculum on length, and the best model is kept."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from recipe.architecture import save_model
from recipe.optimization import new_optimizers, set_rates, share_of_peak
from torch.nn import functional
from transformers import GraniteMoeHybridForCausalLM
from transformers.models.granitemoehybrid.modeling_granitemoehybrid import load_balancing_loss_func

from memory.rows import ANSWER_WEIGHT, LAST_LONGEST, Rows, held_out_rows, training_rows

WARM_UP = 30
GROWTH = 1.02  # of the longest listings, a step
WELL_RECALLED = 0.4  # nats a byte
HELD_OUT = 200


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the training, with a warm-up and a decay of its own.

    Attributes:
        steps: How many.
        rate: The peak learning rate, as a share of the optimisers' peak rates.
        longest: Bytes of the longest listings at first; they grow as soon as that goes well.
        spoilt_share: How many of the listings are spoilt.
    """

    steps: int
    rate: float
    longest: float
    spoilt_share: float


def train(phase: Phase, first_step: int, output: Path, check_every: int) -> None:
    """Train the output's model through a phase, and put the best one found in its place."""
    model = GraniteMoeHybridForCausalLM.from_pretrained(output)
    optimizers = new_optimizers(model)
    held_out = held_out_rows(HELD_OUT)
    best, longest, smooth, started = -1.0, phase.longest, 4.0, time.monotonic()
    for step in range(1, phase.steps + 1):
        set_rates(optimizers, phase.rate * share_of_peak(step, phase.steps, WARM_UP))
        rows = training_rows(first_step + step - 1, int(longest), phase.spoilt_share)
        loss = _step(model, optimizers, rows)
        smooth += 0.1 * (loss - smooth)
        if smooth < WELL_RECALLED:
            longest = min(LAST_LONGEST, longest * GROWTH)
        if step % 20 == 0:
            _log(
                step=step,
                seconds=round(time.monotonic() - started),
                longest=round(longest),
                loss=round(smooth, 3),
            )
        if step % check_every and step != phase.steps:
            continue
        matches = {name: exact_match(model, rows) for name, rows in held_out.items()}
        _log(step=step, held_out_exact_match=matches)
        if sum(matches.values()) >= best:
            best = sum(matches.values())
            save_model(model, output)


@torch.no_grad()
def exact_match(model: GraniteMoeHybridForCausalLM, rows: Rows) -> float:
    """Return the share of rows whose answer tokens are all the likeliest: what greedy would say."""
    model.eval()
    right = _forward(model, rows)[0].argmax(-1) == rows.tokens[:, 1:]
    asked = rows.weights[:, 1:] == ANSWER_WEIGHT
    return (right | ~asked).all(-1).float().mean().item()


def _step(
    model: GraniteMoeHybridForCausalLM, optimizers: list[torch.optim.Optimizer], rows: Rows
) -> float:
    """Take one step and return the loss of the answers."""
    model.train()
    for optimizer in optimizers:
        optimizer.zero_grad()
    logits, uneven = _forward(model, rows)
    losses = functional.cross_entropy(
        logits.flatten(0, 1), rows.tokens[:, 1:].flatten(), reduction="none"
    )
    weights = rows.weights[:, 1:].flatten()
    loss = (losses * weights).sum() / weights.sum()
    (loss + model.config.router_aux_loss_coef * uneven).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
    return losses[weights == ANSWER_WEIGHT].mean().item()


def _forward(model: GraniteMoeHybridForCausalLM, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits for all tokens but the first, and how unevenly the experts were used."""
    length = rows.tokens.shape[1]
    hidden = ~rows.foreign[:, None, None, :] | rows.foreign[:, None, :, None]
    mask = hidden & torch.ones(length, length, dtype=torch.bool).tril()
    output = model.model(
        input_ids=rows.tokens,
        attention_mask={"full_attention": mask, "linear_attention": None},
        use_cache=False,
        output_router_logits=True,
    )
    uneven = load_balancing_loss_func(
        output.router_logits, model.config.num_local_experts, model.config.num_experts_per_tok
    )
    return model.lm_head(output.last_hidden_state[:, :-1]), uneven


def _log(**entry: object) -> None:
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()
