"""Train the Eagle head of the tiny hybrid model, on CPU.

    PYTHONPATH=src:lab/src:models/tiny-hybrid OMP_NUM_THREADS=1 <engine python> \
        models/tiny-hybrid-eagle/train.py --output build/tiny-hybrid-eagle

The environment is a CPU engine's: torch and transformers. Seeded throughout.
"""

import argparse
from pathlib import Path

import torch
from drafting.corpus import TRAINING_SEED
from drafting.course import train
from drafting.distil import Phase
from drafting.eagle import EagleDraft, new_head, save_head

# First to draft from the target's features, then to go on from its own.
PHASES = (Phase(150, 0.5, drafts=1, seed=1), Phase(150, 0.4, drafts=3, seed=2))


def main() -> None:
    """Train through all phases and keep the head in the output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train(
        lambda target: EagleDraft(new_head(target, arguments.seed), target),
        PHASES,
        TRAINING_SEED,
        lambda draft: save_head(draft.trained, arguments.output),
    )


if __name__ == "__main__":
    main()
