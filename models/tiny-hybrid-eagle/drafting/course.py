"""A whole training: the target's text, then phase after phase, with the acceptance after each."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from recipe import scan
from transformers import GraniteMoeHybridForCausalLM

from drafting.acceptance import mean_acceptance_length
from drafting.corpus import HELD_OUT_SEED, Row, corpus
from drafting.distil import Draft, Phase, distil

TARGET = Path(__file__).parents[2] / "tiny-hybrid"
DRAFTS = 3  # in a row, where acceptance is measured
ROWS, HELD_OUT_ROWS = 512, 64  # of each kind


def load_target() -> GraniteMoeHybridForCausalLM:
    """Return the model that drafts are for, which nothing here trains."""
    return GraniteMoeHybridForCausalLM.from_pretrained(TARGET).eval().requires_grad_(False)


def train(
    new_draft: Callable[[GraniteMoeHybridForCausalLM], Draft],
    phases: Sequence[Phase],
    seed: int,
    save: Callable[[Draft], None],
) -> None:
    """Train a new draft of the target and save it after each phase."""
    target = load_target()
    texts = corpus(target, ROWS, seed)
    held_out = corpus(target, HELD_OUT_ROWS, HELD_OUT_SEED)
    scan.install()
    draft = new_draft(target)
    for phase in phases:
        distil(draft, target, [row for rows in texts.values() for row in rows], phase)
        save(draft)
        sys.stdout.write(json.dumps(acceptance(draft, target, held_out)) + "\n")


def acceptance(
    draft: Draft, target: GraniteMoeHybridForCausalLM, texts: dict[str, list[Row]]
) -> dict[str, float]:
    """Return the mean acceptance length for each kind of text."""
    return {
        kind: round(mean_acceptance_length(draft, target, rows, DRAFTS), 2)
        for kind, rows in texts.items()
    }
