"""Nights of engines whose starts differ by luck: which reds are told, and whether a step is.

::

    python -m tests.start_luck_worlds --worlds 100
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click
import numpy as np

from hybridwatch.analysis.start_luck import Sessions, lasting_reds

NIGHTS: Final = 90
SCENARIOS: Final = 6
LUCK: Final = 0.04
STEP: Final = 0.06
_TRIALS: Final = 10
_OF_TRIALS: Final = 0.015
_STEP_AT: Final = 60
_IN_TIME: Final = 3
_RED: Final = 2.8
"""Standard errors from which ten trials say red."""
_MARGIN: Final = 0.03


@dataclass(frozen=True)
class Told:
    """What was told of a world: reds, alerts without a cause, and the step, if there is one."""

    reds: int
    false: int
    told: bool


def world(seed: int, luck: float, step: float) -> list[Sessions]:
    """Make 90 nights of 6 scenarios; the first gets slower by a step that lasts."""
    rng = np.random.default_rng(seed)
    sides = np.zeros((SCENARIOS, NIGHTS, 2, _TRIALS))
    sides += rng.uniform(-luck, luck, sides.shape[:-1])[..., None]
    sides += rng.normal(0.0, _OF_TRIALS, sides.shape)
    sides[0, _STEP_AT:, 1] += np.log1p(step)
    ratios = sides[:, :, 1] - sides[:, :, 0]
    effects = ratios.mean(axis=-1)
    errors = ratios.std(axis=-1, ddof=1) / np.sqrt(_TRIALS)
    reds = (effects > np.log1p(_MARGIN)) & (effects > _RED * errors)
    levels = np.median(sides[:, :, 0], axis=-1)
    nights = np.arange(NIGHTS, dtype=np.int64)
    return [Sessions(nights, *parts) for parts in zip(effects, errors, levels, reds, strict=True)]


def told_of(seed: int, luck: float = LUCK, step: float = 0.0) -> Told:
    """Look at a world after every night, and count the alerts that open."""
    made = world(seed, luck, step)
    false, told = 0, False
    for nth, own in enumerate(made):
        opened = -_IN_TIME
        for night, stood in _nights_told(own, made):
            if step and nth == 0 and night >= _STEP_AT:
                told |= night < _STEP_AT + _IN_TIME
            elif night - opened >= _IN_TIME:
                false += 1
            opened = night if stood < _STEP_AT or nth or not step else opened
    return Told(int(sum(one.reds.sum() for one in made)), false, told)


def _nights_told(own: Sessions, alike: list[Sessions]) -> Iterator[tuple[int, int]]:
    """Yield the first night on which each red stands, and the red's own."""
    known: set[int] = set()
    for night in range(NIGHTS):
        if not own.reds[max(0, night - _IN_TIME + 1) : night + 1].any():
            continue
        newest = own.reds & (own.moments > night - _IN_TIME)  # others were looked at before
        until = Sessions(
            own.moments[: night + 1],
            own.effects[: night + 1],
            own.errors[: night + 1],
            own.baselines[: night + 1],
            newest[: night + 1],
        )
        for red in np.flatnonzero(lasting_reds(until, alike)):
            if red not in known:
                known.add(int(red))
                yield night, int(red)


@click.command()
@click.option("--worlds", default=100, show_default=True)
def main(worlds: int) -> None:
    """Print how often luck is told as a change, and a step in time."""
    for luck, step in ((LUCK, 0.0), (LUCK, STEP), (0.0, STEP)):
        found = [told_of(seed, luck, step) for seed in range(worlds)]
        false = [one.false for one in found]
        click.echo(
            f"luck {luck:.0%}, step {step:.0%}: {np.mean([one.reds for one in found]):.1f} reds, "
            f"{np.mean(false):.2f} false alerts a world (most {max(false)}), "
            f"step told within {_IN_TIME} nights in {np.mean([one.told for one in found]):.0%}"
        )


if __name__ == "__main__":
    main()
