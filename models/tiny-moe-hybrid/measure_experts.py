"""Measure what the experts do for the answers, and keep the figures beside the model.

    PYTHONPATH=src:lab/src:models/tiny-hybrid <engine python> \
        models/tiny-moe-hybrid/measure_experts.py

Counts the documents of each evaluation file whose answer bytes are all the likeliest: with the
whole model, with the experts' output zero, with the shared MLP's output zero, and with each token
sent to the experts after its own. Beside them, by layer, the share of all choices on evaluation
documents that fell on each expert.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from evaluate import record
from recipe import scan
from recipe.batches import Batch, document_batch
from recipe.tokenizer import PAD
from recipe.training import exact_match
from torch import nn
from transformers import AutoModelForCausalLM, GraniteMoeHybridForCausalLM

from hybridwatch_lab.embedded_tasks import EVALUATION_COUNT, evaluation_files

HERE = Path(__file__).parent

Hook = Callable[[nn.Module, tuple[Any, ...], Any], Any]


def main() -> None:
    """Measure and write the figures."""
    scan.install()
    model = AutoModelForCausalLM.from_pretrained(HERE).eval()
    batches = {Path(name).stem: document_batch(rows) for name, rows in evaluation_files().items()}
    changes = {
        "experts_off": ("block_sparse_moe", _nothing),
        "shared_mlp_off": ("shared_mlp", _nothing),
        "next_experts": ("block_sparse_moe.router", _next_experts),
    }
    figures: dict[str, object] = {
        "routed_share": _routed_share(model, batches),
        "whole": _correct(model, batches),
    }
    for name, (part, hook) in changes.items():
        with _hooked(model, part, hook):
            figures[name] = _correct(model, batches)
    record(HERE / "evaluation.json", "experts", {"documents": EVALUATION_COUNT, **figures})


def _correct(model: GraniteMoeHybridForCausalLM, batches: Mapping[str, Batch]) -> dict[str, int]:
    return {
        task: round(exact_match(model, batch) * len(batch.tokens))
        for task, batch in batches.items()
    }


@contextmanager
def _hooked(model: GraniteMoeHybridForCausalLM, part: str, hook: Hook) -> Iterator[None]:
    """Let a hook change the output of a part in every layer."""
    handles = [
        layer.get_submodule(part).register_forward_hook(hook) for layer in model.model.layers
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _nothing(_part: nn.Module, _inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(output)


def _next_experts(
    router: nn.Module,
    _inputs: tuple[Any, ...],
    output: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    logits, weights, chosen = output
    return logits, weights, (chosen + 1) % router.num_experts


@torch.no_grad()
def _routed_share(
    model: GraniteMoeHybridForCausalLM, batches: Mapping[str, Batch]
) -> list[list[float]]:
    """Return for each layer the share of all choices that fell on each expert."""
    experts, chosen_each = model.config.num_local_experts, model.config.num_experts_per_tok
    counts = torch.zeros(model.config.num_hidden_layers, experts)
    for batch in batches.values():
        output = model(input_ids=batch.tokens, use_cache=False, output_router_logits=True)
        real = batch.tokens.flatten() != PAD
        for layer, logits in enumerate(output.router_logits):
            choices = logits[real].topk(chosen_each).indices.flatten()
            counts[layer] += choices.bincount(minlength=experts)
    shares = counts / counts.sum(1, keepdim=True)
    return [[round(share, 3) for share in layer] for layer in shares.tolist()]


if __name__ == "__main__":
    main()
