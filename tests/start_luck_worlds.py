"""Nights of engines that differ by chance alone: which reds are told, and when a change is.

::

    python -m tests.start_luck_worlds --worlds 100
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Final

import click
import numpy as np
import numpy.typing as npt

from hybridwatch.analysis.noise import Sessions, lasting_losses, lasting_reds
from hybridwatch.analysis.paired_proportion import Pairs, difference_interval, mcnemar_p

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
_LEVEL: Final = 0.05
"""Of the test of one night's answers."""


@dataclass(frozen=True)
class Starts:
    """By how much the starts of an engine differ.

    Attributes:
        luck: Up to so much either way, every value as likely as another.
        modes: Some starts are slower by so much.
        often: Share of the starts that are.
    """

    luck: float = 0.0
    modes: float = 0.0
    often: float = 0.5

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Give what each start is slower by."""
        either_way = rng.uniform(-self.luck, self.luck, shape)
        return np.asarray(either_way + self.modes * (rng.random(shape) < self.often))


@dataclass(frozen=True)
class Questions:
    """What both engines are asked every night.

    Attributes:
        count: Questions.
        flips: Share of them that a side answers otherwise than usual, by chance.
        lost: Share of the usual answers that the contender loses from night 60 on.
    """

    count: int
    flips: float
    lost: float = 0.0


ASKED: Final = (Questions(120, 0.004), Questions(120, 0.1), Questions(1319, 0.02))
LUCK: Final = Starts(luck=0.04)
MODES: Final = Starts(modes=0.06)
NOW_AND_THEN: Final = Starts(modes=0.06, often=0.15)
RARELY: Final = Starts(modes=0.06, often=0.05)


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


def answers(seed: int, asked: Questions) -> Sessions:
    """Make 90 nights of answers; differences of shares, upwards is worse."""
    rng = np.random.default_rng(seed)
    lost = rng.binomial(asked.count, asked.flips, NIGHTS)
    won = rng.binomial(asked.count, asked.flips, NIGHTS)
    lost[_STEP_AT:] += rng.binomial(asked.count, asked.lost, NIGHTS - _STEP_AT)
    pairs = [Pairs(asked.count, *map(int, each)) for each in zip(lost, won, strict=True)]
    between = [difference_interval(each) for each in pairs]
    return Sessions(
        moments=np.arange(NIGHTS, dtype=np.int64),
        effects=np.array([-each.difference for each in pairs]),
        errors=np.array([(each.high - each.low) / (2 * 1.96) for each in between]),
        baselines=np.zeros(NIGHTS),
        reds=np.array([each.difference < 0 and mcnemar_p(each) < _LEVEL for each in pairs]),
    )


def lost_of(seed: int, asked: Questions) -> Told:
    """Look at a world of answers after every night."""
    own = answers(seed, asked)
    told = list(_nights_told(own, lasting_losses))
    false = any(night < _STEP_AT or not asked.lost for night in told)
    nights = next((night - _STEP_AT + 1 for night in told if night >= _STEP_AT), 0)
    return Told(int(own.reds.sum()), int(false), nights)


def told_of(seed: int, starts: Starts = LUCK, step: float = 0.0) -> Told:
    """Look at a world after every night."""
    made = world(seed, starts, step)
    false, nights = 0, 0
    for own in made:
        told = list(_nights_told(own, lambda until: lasting_reds(until, made)))
        has_step = bool(step) and own is made[0]
        false += any(night < _STEP_AT or not has_step for night in told)
        if has_step:
            nights = next((night - _STEP_AT + 1 for night in told if night >= _STEP_AT), 0)
    return Told(int(sum(one.reds.sum() for one in made)), false, nights)


def _nights_told(
    own: Sessions, lasting: Callable[[Sessions], npt.NDArray[np.bool_]]
) -> Iterator[int]:
    """Yield the nights whose red stands by what is known that night."""
    for night in np.flatnonzero(own.reds).tolist():
        newest = replace(own, reds=own.reds & (own.moments > night - _TOGETHER))
        until = (getattr(newest, one.name)[: night + 1] for one in fields(newest))
        if lasting(Sessions(*until))[night]:
            yield night


@click.command()
@click.option("--worlds", default=100, show_default=True)
def main(worlds: int) -> None:
    """Print how often chance is told as a change, and after how many nights a change is."""
    kinds = (LUCK, MODES, NOW_AND_THEN, RARELY)
    for starts, step in product((*kinds, Starts()), (0.0, STEP)):
        found = [told_of(seed, starts, step) for seed in range(worlds)]
        slower = (
            f"{starts.often:.0%} slower by {starts.modes:.0%}" if starts.modes else "none slower"
        )
        said = f"luck {starts.luck:.0%}, {slower}, step {step:.0%}"
        click.echo(_line(said, found, SCENARIOS, told=bool(step)))
    for asked in (*ASKED, *(replace(one, lost=lost) for one in ASKED for lost in (0.05, 0.13))):
        found = [lost_of(seed, asked) for seed in range(worlds)]
        said = f"{asked.count} questions, {asked.flips:.1%} by chance, {asked.lost:.0%} lost"
        click.echo(_line(said, found, 1, told=bool(asked.lost)))


def _line(said: str, found: list[Told], scenarios: int, *, told: bool) -> str:
    line = (
        f"{said}: {np.mean([one.reds for one in found]):.1f} reds a world, "
        f"{sum(one.false for one in found)} of {len(found) * scenarios} told without a cause"
    )
    if not told:
        return line
    nights = [one.nights or NIGHTS for one in found]
    within = [np.mean(np.less_equal(nights, most)) for most in (1, 3, 7, 14)]
    return f"{line}, told within 1, 3, 7, 14 nights: {', '.join(map('{:.0%}'.format, within))}"


if __name__ == "__main__":
    main()
