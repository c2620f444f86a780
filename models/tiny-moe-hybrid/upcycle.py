"""Make the mixture-of-experts twin out of the trained tiny hybrid model, on CPU.

    PYTHONPATH=src:lab/src:models/tiny-hybrid <engine python> models/tiny-moe-hybrid/upcycle.py \
        --output build/tiny-moe-hybrid

Sparse upcycling (Komatsuzaki et al. 2022), on half of each MLP: one half of its neurons stays the
dense, shared MLP, the other half becomes every expert. The weights that a router gives to the
experts of a token sum to 1, so before any training the new model computes what the old one did, and
it does so through its experts. Training then makes them different.
"""

import argparse
from pathlib import Path

import torch
from recipe import scan
from recipe.architecture import save_model
from recipe.batches import Mix
from recipe.training import Phase, train
from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM

from hybridwatch_lab.embedded_tasks import MAX_DISTANCE

DENSE_MODEL = Path(__file__).parent.parent / "tiny-hybrid"
EXPERTS, EXPERTS_PER_TOKEN = 4, 2
AUX_LOSS_WEIGHT = 0.01

FIRST_STEP = 2001  # Above the dense model's steps, so that every document is new.
PHASE = Phase(400, 0.4, MAX_DISTANCE, Mix(recall_bytes=2600, problem_rows=24, drill_rows=0))


def main() -> None:
    """Upcycle the dense model, train the result and keep the best model in the output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check-every", type=int, default=100, metavar="STEPS")
    arguments = parser.parse_args()
    scan.install()
    dense = GraniteMoeHybridForCausalLM.from_pretrained(DENSE_MODEL)
    save_model(upcycled(dense, arguments.seed), arguments.output)
    train(PHASE, FIRST_STEP, arguments.output, arguments.check_every)


@torch.no_grad()
def upcycled(dense: GraniteMoeHybridForCausalLM, seed: int) -> GraniteMoeHybridForCausalLM:
    """Return a model with experts that computes what the dense one does, with random routers."""
    kept = dense.config.shared_intermediate_size // 2
    torch.manual_seed(seed)
    model = GraniteMoeHybridForCausalLM(_config(dense.config, kept))
    weights = dense.state_dict()
    for index in range(dense.config.num_hidden_layers):
        layer = f"model.layers.{index}."
        entering = f"{layer}shared_mlp.input_linear.weight"
        leaving = f"{layer}shared_mlp.output_linear.weight"
        gate, up = weights[entering].chunk(2)
        down = weights[leaving]
        weights[entering] = torch.cat([gate[:kept], up[:kept]])
        weights[leaving] = down[:, :kept]
        experts = f"{layer}block_sparse_moe.experts."
        weights[f"{experts}gate_up_proj"] = _copies(torch.cat([gate[kept:], up[kept:]]))
        weights[f"{experts}down_proj"] = _copies(down[:, kept:])
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or not all("router" in name for name in missing):
        raise RuntimeError(f"the dense model's weights do not fit: {missing}, {unexpected}")
    return model


def _config(dense: GraniteMoeHybridConfig, shared_width: int) -> GraniteMoeHybridConfig:
    changes = {
        "shared_intermediate_size": shared_width,
        "intermediate_size": dense.shared_intermediate_size - shared_width,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": EXPERTS_PER_TOKEN,
        "router_aux_loss_coef": AUX_LOSS_WEIGHT,
    }
    return GraniteMoeHybridConfig(**(dense.to_dict() | changes))


def _copies(weights: torch.Tensor) -> torch.Tensor:
    return weights.repeat(EXPERTS, 1, 1)


if __name__ == "__main__":
    main()
