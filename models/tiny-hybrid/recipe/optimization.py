"""Which optimiser moves which weights, and how fast from step to step."""

import math

import torch
from torch import nn

MATRIX_RATE = 1e-2
OTHER_RATE = 4e-3


def new_optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
    """Return Muon for the plain matrices inside the layers and AdamW for everything else.

    Experts are stacked in three dimensions and a router is a few rows; AdamW takes both.
    """
    matrices, others = [], []
    for name, values in model.named_parameters():
        plain = values.dim() == 2 and "embed" not in name and "router" not in name
        (matrices if plain else others).append(values)
    return [
        torch.optim.Muon(
            matrices, lr=MATRIX_RATE, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def set_rates(optimizers: list[torch.optim.Optimizer], share: float) -> None:
    """Set every learning rate to a share of its peak."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = optimizer.defaults["lr"] * share


def share_of_peak(step: int, steps: int, warm_up: int) -> float:
    """Return a linear warm-up to the peak rate, then half a cosine down to 2 % of it.

    Args:
        step: Of this phase, from 1.
        steps: Of this phase in all.
        warm_up: Steps until the peak.
    """
    if step < warm_up:
        return step / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)
    return 0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2
