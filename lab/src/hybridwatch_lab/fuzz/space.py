"""Which lengths are nasty for an engine: those around what it counts in."""

from dataclasses import dataclass
from typing import Final

from hybridwatch.scenarios.scenario import Scenario

CONV_WIDTH: Final = 4
"""Inputs that a convolution of the models here looks at."""
_USUAL_BLOCK: Final = 128
_OUTPUTS: Final = (1, 2, 3, 4, 5, 8, 13, 24)
_IDLE_BATCHES: Final = (0, 1, 3)


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What a case may be made of; each row from the simplest to the nastiest.

    Attributes:
        inputs: Lengths of prompts.
        outputs: Lengths of answers.
        shares: Lengths of shared prefixes; a prompt takes what is shorter than itself.
        budgets: Most tokens of a step; None for the engine's own.
        idle_batches: Dummy batches whenever the engine comes to rest.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    shares: tuple[int, ...]
    budgets: tuple[int | None, ...]
    idle_batches: tuple[int, ...] = _IDLE_BATCHES


def compute_space(scenario: Scenario) -> SearchSpace:
    """Find the nasty lengths of a scenario's engine.

    Blocks are as long as the scenario says; where it leaves that to the engine, 128 tokens, which
    is what engines here take. Where a hit may end within a block, texts part there as well.
    """
    engine = scenario.engine
    block = engine.block_size or _USUAL_BLOCK
    own = engine.max_num_batched_tokens
    limit = engine.max_model_len
    unit = engine.prefix_match_unit
    around = {most * block + by for most in (1, 2) for by in (-1, 0, 1, CONV_WIDTH - 1)}
    within = (unit, block - unit, block + unit, 2 * block - unit + 1) if unit else ()
    outputs = (*_OUTPUTS, block // 2)
    chunks = {chunk + by for chunk in (own or 0,) if chunk for by in (-1, 1)}
    ends = {length + 1 for length in within}
    inputs = {*range(1, CONV_WIDTH + 2), block // 2, *around, *ends, *chunks, 3 * block}
    budgets = (engine.max_num_seqs, CONV_WIDTH * engine.max_num_seqs, block, block + 1)
    return SearchSpace(
        inputs=tuple(sorted(one for one in inputs if one + max(outputs) <= limit)),
        outputs=outputs,
        shares=(0, block, block - 1, block + 1, 2 * block, *within, limit),
        budgets=(None, *(one for one in reversed(budgets) if own is None or one <= own)),
    )
