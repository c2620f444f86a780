"""Train the tiny memory model from nothing, on CPU.

    PYTHONPATH=src:lab/src:models/tiny-hybrid OMP_NUM_THREADS=1 <engine python> \
        models/tiny-memory-moe/train.py --output build/tiny-memory-moe

The environment is a CPU engine's: torch and transformers. Seeded throughout. At every check the
exact match on held-out documents is logged, and the best model of the phase so far is saved.
"""

import argparse
from pathlib import Path

import torch
from memory.loop import Phase, train
from recipe import scan
from recipe.architecture import default_config, new_model, save_model
from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM

# Attention comes first: without positions it sees bytes in no order, and cannot bind a value to a
# key. What is remembered, Mamba layers remember.
CHANGES = {
    "layer_types": ["attention", "mamba", "mamba", "mamba"],
    "shared_intermediate_size": 64,
    "intermediate_size": 64,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "router_aux_loss_coef": 0.01,
}
# Recall is found on short listings and stretched; then what spoils a listing is learned beside it.
PHASES = (
    Phase(300, 1.0, 60, 0.0),
    Phase(200, 0.7, 300, 0.4),
    Phase(450, 0.6, 300, 0.2),
    Phase(450, 0.5, 300, 0.25),
)


@torch.no_grad()
def look_back(model: GraniteMoeHybridForCausalLM) -> None:
    """Let each Mamba layer begin as an induction head: what followed these three bytes before?

    What B writes a byte under is made from the three bytes before it, and what C asks for is made
    in the same way from the last three bytes.
    """
    for layer in model.model.layers:
        if layer.mamba is None:
            continue
        mamba, state = layer.mamba, layer.mamba.ssm_state_size
        inner = mamba.intermediate_size
        rows = mamba.in_proj.weight[2 * inner : 2 * inner + 2 * state]
        rows[:state] *= 2
        rows[state:] = rows[:state]
        taps = mamba.conv1d.weight[:, 0]
        taps[:inner] *= 0.3
        taps[:inner, 3] += 1
        b, c = taps[inner : inner + state], taps[inner + state :]
        b[:, :3] = torch.rand(state, 3) * 2 - 1
        b[:, 3] = 0
        c[:, 1:] = b[:, :3]
        c[:, 0] = 0
        mamba.conv1d.bias.zero_()


def main() -> None:
    """Train through all phases, or go on after some, and keep the best model in the output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--phases-done", type=int, default=0, help="go on from the output's model")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    scan.install()
    if not arguments.phases_done:
        config = GraniteMoeHybridConfig(**(default_config().to_dict() | CHANGES))
        model = new_model(arguments.seed, config)
        look_back(model)
        save_model(model, arguments.output)
    first_step = 1 + sum(phase.steps for phase in PHASES[: arguments.phases_done])
    for phase in PHASES[arguments.phases_done :]:
        train(phase, first_step, arguments.output, arguments.check_every)
        first_step += phase.steps


if __name__ == "__main__":
    main()
