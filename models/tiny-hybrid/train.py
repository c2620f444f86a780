"""Train the tiny hybrid model on the embedded tasks, from nothing, on CPU.

    PYTHONPATH=src:lab/src <engine python> models/tiny-hybrid/train.py --output build/tiny-hybrid

The environment is a CPU engine's: torch and transformers. Seeded throughout. Every hundred steps
the exact match on held-out documents is logged, and the best model so far is saved.
"""

import argparse
from pathlib import Path

from recipe import scan
from recipe.architecture import new_model, save_model
from recipe.batches import Mix
from recipe.training import Phase, train

from hybridwatch_lab.embedded_tasks import MAX_DISTANCE

# Copying is found in short prompts and arithmetic by drill. What is left to learn after that is
# which number of a story belongs in which step; the last phase is mostly stories.
PHASES = (
    Phase(1000, 1.0, 20.0, Mix(recall_bytes=2600, problem_rows=6, drill_rows=5)),
    Phase(400, 0.4, MAX_DISTANCE, Mix(recall_bytes=2600, problem_rows=16, drill_rows=0)),
    Phase(500, 0.5, MAX_DISTANCE, Mix(recall_bytes=1300, problem_rows=32, drill_rows=0)),
)


def main() -> None:
    """Train through all phases, or go on after some, and keep the best model in the output."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check-every", type=int, default=100, metavar="STEPS")
    parser.add_argument("--phases-done", type=int, default=0, help="go on from the output's model")
    arguments = parser.parse_args()
    scan.install()
    if not arguments.phases_done:
        save_model(new_model(arguments.seed), arguments.output)
    first_step = 1 + sum(phase.steps for phase in PHASES[: arguments.phases_done])
    for phase in PHASES[arguments.phases_done :]:
        train(phase, first_step, arguments.output, arguments.check_every)
        first_step += phase.steps


if __name__ == "__main__":
    main()
