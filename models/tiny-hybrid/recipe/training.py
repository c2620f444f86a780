"""The training loop: phases of steps on all batches together; the best model found is kept."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional
from transformers import GraniteMoeHybridForCausalLM

from hybridwatch_lab.embedded_tasks import MAX_DISTANCE
from recipe.architecture import save_model
from recipe.batches import ANSWER_WEIGHT, Batch, Mix, held_out_batches, training_batches
from recipe.optimization import new_optimizers, set_rates, share_of_peak

WARM_UP = 50

DISTANCE_GROWTH = 1.02  # a step
WELL_COPIED = 0.4  # nats a byte

HELD_OUT = 200
GOOD_ENOUGH = 0.995


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the training, with a warm-up and a decay of its own.

    Attributes:
        steps: How many.
        rate: The peak learning rate, as a share of the optimisers' peak rates.
        first_distance: How far back the first questions reach; later ones reach further back as
            soon as that goes well.
        mix: What a step trains on.
    """

    steps: int
    rate: float
    first_distance: float
    mix: Mix


def train(phase: Phase, first_step: int, output: Path, check_every: int) -> None:
    """Train the output's model through a phase, and put the best one found in its place."""
    model = GraniteMoeHybridForCausalLM.from_pretrained(output)
    optimizers = new_optimizers(model)
    held_out = held_out_batches(HELD_OUT)
    best, distance, started = -1.0, phase.first_distance, time.monotonic()
    for step in range(1, phase.steps + 1):
        set_rates(optimizers, phase.rate * share_of_peak(step, phase.steps, WARM_UP))
        batches = training_batches(first_step + step - 1, int(distance), phase.mix)
        losses = _step(model, optimizers, batches)
        if losses[0] < WELL_COPIED:
            distance = min(MAX_DISTANCE, distance * DISTANCE_GROWTH)
        if step % check_every and step != phase.steps:
            continue
        matches = {task: exact_match(model, batch) for task, batch in held_out.items()}
        _log(step, time.monotonic() - started, distance, losses, matches)
        if min(matches.values()) >= best:
            best = min(matches.values())
            save_model(model, output)
        if best >= GOOD_ENOUGH:
            break


@torch.no_grad()
def exact_match(model: GraniteMoeHybridForCausalLM, batch: Batch) -> float:
    """Return the share of rows whose answer bytes are all the likeliest: what greedy would say."""
    model.eval()
    logits = model(input_ids=batch.tokens, use_cache=False).logits
    right = logits[:, :-1].argmax(-1) == batch.tokens[:, 1:]
    asked = batch.weights[:, 1:] == ANSWER_WEIGHT
    return (right | ~asked).all(-1).float().mean().item()


def _step(
    model: GraniteMoeHybridForCausalLM,
    optimizers: list[torch.optim.Optimizer],
    batches: list[Batch],
) -> list[float]:
    """Take one step on all batches together and return the loss of each."""
    model.train()
    for optimizer in optimizers:
        optimizer.zero_grad()
    losses = []
    for batch in batches:
        loss = _loss(model, batch)
        loss.backward()
        losses.append(loss.item())
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
    return losses


def _loss(model: GraniteMoeHybridForCausalLM, batch: Batch) -> torch.Tensor:
    """Return the weighted loss of a batch, and with experts what their uneven use costs."""
    experts = model.config.num_local_experts > 0
    output = model(input_ids=batch.tokens, use_cache=False, output_router_logits=experts)
    logits = output.logits[:, :-1]
    losses = functional.cross_entropy(
        logits.flatten(0, 1), batch.tokens[:, 1:].flatten(), reduction="none"
    )
    weights = batch.weights[:, 1:].flatten()
    loss = (losses * weights).sum() / weights.sum()
    return loss + model.config.router_aux_loss_coef * output.aux_loss if experts else loss


def _log(
    step: int, seconds: float, distance: float, losses: list[float], matches: dict[str, float]
) -> None:
    entry = {
        "step": step,
        "seconds": round(seconds),
        "max_distance": round(distance),
        "losses": losses,
        "held_out_exact_match": matches,
    }
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()
