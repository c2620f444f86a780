"""Nights of engines whose starts differ by luck: which reds are told, and when a step is.

::

    python -m tests.start_luck_worlds --worlds 100
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

import click
import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.start_luck import Sessions, lasting_reds

NIGHTS: Final = 90
SCENARIOS: Final = 6
STEP: Final = 0.06
_TRIALS: Final = 10
_OF_TRIALS: Final = 0.015
_STEP_AT: Final = 60
_TOGETHER: Final = 10
"""Nights that may speak together; whether an older red stands makes no difference."""
_RED: Final = 2.8
"""Standard errors from which ten trials say red."""
_MARGIN: Final = 0.03


@dataclass(frozen=True)
class Starts:
    """By how much the starts of an engine differ.

    Attributes:
        luck: Up to so much either way, every value as likely as another.
        modes: Half of the starts are slower by so much.
    """

    luck: float = 0.0
    modes: float = 0.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Give what each start is slower by."""
        either_way = rng.uniform(-self.luck, self.luck, shape)
        return np.asarray(either_way + self.modes * rng.integers(0, 2, shape))


LUCK: Final = Starts(luck=0.04)
MODES: Final = Starts(modes=0.06)


@dataclass(frozen=True)
class Told:
    """What was told of a world.

    Attributes:
        reds: Red verdicts of single sessions.
        false: Scenarios of which one was told without a cause.
        nights: After how many nights the step was told; 0 if it was not.
    """

    reds: int
    false: int
    nights: int


def world(seed: int, starts: Starts, step: float) -> list[Sessions]:
    """Make 90 nights of 6 scenarios; the first gets slower by a step that lasts."""
    rng = np.random.default_rng(seed)
    sides = np.zeros((SCENARIOS, NIGHTS, 2, _TRIALS))
    sides += starts.draw(rng, sides.shape[:-1])[..., None]
    sides += rng.normal(0.0, _OF_TRIALS, sides.shape)
    sides[0, _STEP_AT:, 1] += np.log1p(step)
    ratios = sides[:, :, 1] - sides[:, :, 0]
    effects = ratios.mean(axis=-1)
    errors = ratios.std(axis=-1, ddof=1) / np.sqrt(_TRIALS)
    reds = (effects > np.log1p(_MARGIN)) & (effects > _RED * errors)
    levels = np.median(sides[:, :, 0], axis=-1)
    nights = np.arange(NIGHTS, dtype=np.int64)
    return [Sessions(nights, *parts) for parts in zip(effects, errors, levels, reds, strict=True)]


def told_of(seed: int, starts: Starts = LUCK, step: float = 0.0) -> Told:
    """Look at a world after every night."""
    made = world(seed, starts, step)
    false, nights = 0, 0
    for own in made:
        told = list(_nights_told(own, made))
        has_step = bool(step) and own is made[0]
        false += any(night < _STEP_AT or not has_step for night in told)
        if has_step:
            nights = next((night - _STEP_AT + 1 for night in told if night >= _STEP_AT), 0)
    return Told(int(sum(one.reds.sum() for one in made)), false, nights)


def _nights_told(own: Sessions, alike: list[Sessions]) -> Iterator[int]:
    """Yield the nights whose red stands by what is known that night."""
    for night in np.flatnonzero(own.reds).tolist():
        newest = replace(own, reds=own.reds & (own.moments > night - _TOGETHER))
        until = (getattr(newest, one.name)[: night + 1] for one in fields(newest))
        if lasting_reds(Sessions(*until), alike)[night]:
            yield night


@click.command()
@click.option("--worlds", default=100, show_default=True)
def main(worlds: int) -> None:
    """Print how often luck is told as a change, and after how many nights a step is."""
    for starts, step in ((LUCK, 0.0), (MODES, 0.0), (LUCK, STEP), (MODES, STEP), (Starts(), STEP)):
        found = [told_of(seed, starts, step) for seed in range(worlds)]
        false = sum(one.false for one in found)
        line = (
            f"luck {starts.luck:.0%}, modes {starts.modes:.0%}, step {step:.0%}: "
            f"{np.mean([one.reds for one in found]):.1f} reds a world, "
            f"{false} of {worlds * SCENARIOS} scenarios told without a cause"
        )
        if step:
            nights = [one.nights or NIGHTS for one in found]
            within = [np.mean(np.less_equal(nights, most)) for most in (1, 3, 7, 14)]
            line += ", the step within 1, 3, 7, 14 nights: " + ", ".join(
                map("{:.0%}".format, within)
            )
        click.echo(line)


if __name__ == "__main__":
    main()
