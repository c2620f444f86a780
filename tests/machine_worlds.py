"""Nights of a machine that may change: how often a change is told, and how soon.

::

    python -m tests.machine_worlds --worlds 100
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import click
import numpy as np
import numpy.typing as npt

from hybridwatch.history.machine_changes import find_moves

Array = npt.NDArray[np.float64]

NIGHTS: Final = 90
AT: Final = 60
IN_TIME: Final = 3
LATE: Final = 6
_STEP: Final = 0.05
_SCENARIOS: Final = 6
_METRICS: Final = 3
_OF_MEDIANS: Final = 0.006
_LIKE_LAST_NIGHT: Final = 0.8


@dataclass(frozen=True)
class Noise:
    """What moves levels without any cause.

    Attributes:
        wander: Deviation of each scenario's level, which is alike from night to night.
        slow: Share of the nights that are 8 to 20 % slower.
        luck: By how much starts differ, either way.
        modes: Distance of two modes, of which a start draws one.
    """

    wander: float = 0.0
    slow: float = 0.0
    luck: float = 0.0
    modes: float = 0.0


NOISE: Final[Mapping[str, Noise]] = {
    "quiet": Noise(),
    "wanders": Noise(wander=0.02),
    "slow nights": Noise(slow=0.1),
    "luck of starts": Noise(luck=0.04),
    "modes of starts": Noise(modes=0.06),
    "usual": Noise(wander=0.008, slow=0.03, luck=0.003),
}


def world(seed: int, step: float, noise: Noise = NOISE["quiet"]) -> Array:
    """Make levels of two builds: by build, scenario, metric and night."""
    rng = np.random.default_rng(seed)
    levels = rng.normal(0.0, _OF_MEDIANS, (2, _SCENARIOS, _METRICS, NIGHTS))
    starts = (2, _SCENARIOS, 1, NIGHTS)
    levels += rng.uniform(-noise.luck, noise.luck, starts) + noise.modes * rng.integers(
        0, 2, starts
    )
    common = np.zeros((_SCENARIOS, NIGHTS))
    before = rng.standard_normal(_SCENARIOS)
    for night in range(NIGHTS):
        fresh = np.sqrt(1 - _LIKE_LAST_NIGHT**2) * rng.standard_normal(_SCENARIOS)
        before = _LIKE_LAST_NIGHT * before + fresh
        common[:, night] = noise.wander * before
    common += (rng.random(NIGHTS) < noise.slow) * np.log(rng.uniform(1.08, 1.2, NIGHTS))
    common[:, AT:] += np.log1p(step)
    return levels + common[:, None]


def told_nights(seed: int, step: float, noise: Noise, *, facts: bool = False) -> list[int]:
    """Give the nights on which a machine is said to have changed."""
    baseline, contender = world(seed, step, noise)
    return [night for night, _, _ in find_moves(baseline, contender, {AT} if facts else set())]


def is_told(
    seed: int, step: float, noise: Noise, after: int = IN_TIME, *, facts: bool = False
) -> bool:
    """Say whether a change is told after some nights, at its own night or beside it."""
    baseline, contender = world(seed, step, noise)[..., : AT + after]
    found = find_moves(baseline, contender, {AT} if facts else set())
    return any(abs(night - AT) <= 1 for night, _, _ in found)


@click.command()
@click.option("--worlds", default=100, show_default=True)
def main(worlds: int) -> None:
    """Print how often a change of the machine is told that is none, and one that is."""
    for name, noise in NOISE.items():
        false = np.mean([bool(told_nights(seed, 0.0, noise)) for seed in range(worlds)])
        soon, late, known = (
            np.mean([is_told(seed, _STEP, noise, after, facts=facts) for seed in range(worlds)])
            for after, facts in ((IN_TIME, False), (LATE, False), (1, True))
        )
        click.echo(
            f"{name}: a false finding in {false:.0%} of {worlds} worlds of {NIGHTS} nights; a "
            f"change of {_STEP:.0%} is told within {IN_TIME} nights in {soon:.0%}, within {LATE} "
            f"in {late:.0%}, on the first night with a new kernel in {known:.0%}"
        )


if __name__ == "__main__":
    main()
