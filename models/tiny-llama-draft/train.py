"""Train the small Llama that drafts for the tiny hybrid model, on CPU.

    PYTHONPATH=src:lab/src:models/tiny-hybrid:models/tiny-hybrid-eagle OMP_NUM_THREADS=1 \
        <engine python> models/tiny-llama-draft/train.py --output build/tiny-llama-draft

The environment is a CPU engine's: torch and transformers. Seeded throughout.
"""

import argparse
from pathlib import Path

import torch
from drafting.corpus import TRAINING_SEED
from drafting.course import train
from drafting.distil import Phase
from drafting.llama import LlamaDraft, new_llama, save_llama

# It drafts from the text alone, so whoever foresees one token well foresees three.
PHASES = (Phase(300, 0.5, drafts=1, seed=1),)


def main() -> None:
    """Train through all phases and keep the model in the output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train(
        lambda _target: LlamaDraft(new_llama(arguments.seed)),
        PHASES,
        TRAINING_SEED,
        lambda draft: save_llama(draft.trained, arguments.output),
    )


if __name__ == "__main__":
    main()
