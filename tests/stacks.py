"""Made-up profiles: stacks of two engines whose functions have known shares of the time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from hybridwatch.records.run import Run
from hybridwatch.records.store.verdicts import Passes, find_profile, write_profile

SHARES: Final = {"matmul": 0.4, "norm": 0.2, "sample": 0.1} | {
    f"part_{at}": 0.01 for at in range(30)
}
LINES: Final = {10: 0.6, 11: 0.3, 12: 0.1}


def made_passes(
    shares: Mapping[str, float], seed: int, *, passes: int = 8, samples: int = 300
) -> list[dict[tuple[str, ...], int]]:
    """Draw passes whose shares wander by a tenth between passes, as on a busy machine."""
    rng = np.random.default_rng(seed)
    drawn: list[dict[tuple[str, ...], int]] = []
    for _ in range(passes):
        weights = np.array(list(shares.values())) * rng.normal(1, 0.1, len(shares))
        counts = rng.multinomial(samples, weights / weights.sum())
        drawn.append(
            {
                ("loop (core.py:1)", "step (core.py:9)", f"{name} (model.py:{line})"): int(part)
                for name, count in zip(shares, counts, strict=True)
                for line, part in zip(
                    LINES, rng.multinomial(count, list(LINES.values())), strict=True
                )
                if part
            }
        )
    return drawn


BUSY: Final = made_passes(SHARES, 1), made_passes({**SHARES, "busy": 0.1}, 2)
"""An engine, and one with 10 % more work in a function ``busy``."""


def put_profile(results: Path, run: Run, sides: tuple[Passes, Passes] = BUSY) -> Path:
    """Store a profile of a run."""
    path = find_profile(results, run.testbed.id, run.id)
    write_profile(path, results, sides)
    return path
