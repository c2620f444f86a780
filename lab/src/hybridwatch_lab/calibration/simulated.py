"""Noise of known kind, and runs that never happened, with known truth.

A ``shape`` is drawn once, without unit and level; ``series`` then gives it a spread and levels. So
the same noise can be had with a change and without, which separates luck from skill.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import signal, stats

from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.records.identity import EngineBuild, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import Answer, Phase, Run, Sample, Trial

Array = NDArray[np.float64]

_QUESTIONS: Final = 200
_SHARE_RIGHT: Final = 0.75
_AUTOREGRESSION: Final = 0.7
_SETTLING: Final = 50
"""Steps after which an autoregression of 0.7 has forgotten how it began."""
_MODE: Final = 0.9
"""Distance of the two modes from the middle in standard deviations; what is left is within them."""
_DRIFT: Final = 3.0
"""How far the level wanders over a whole series, in standard deviations of its noise."""


class RecordedNoise(Enum):
    """The seven kinds."""

    GAUSSIAN = "Gaussian"
    HEAVY = "heavy tails (t3)"
    BIMODAL = "bimodal"
    DRIFT = "slow drift"
    AUTOCORRELATED = "AR(0.7)"
    BINOMIAL = "binomial, n = 200"
    CONSTANT = "zero variance"


def shape(noise: RecordedNoise, rng: Generator, n: int) -> Array:
    """Draw ``n`` values of mean 0 and variance 1 (drift: about a line; zero variance: all 0)."""
    return _SHAPES[noise](rng, n)


def series(noise: RecordedNoise, drawn: Array, cv: float, level: Array | float = 1.0) -> Array:
    """Give a shape its spread and levels.

    Args:
        noise: The kind that ``drawn`` is of.
        drawn: From ``shape``.
        cv: Coefficient of variation; binomial shares and constants have their own.
        level: The true level at each point, or everywhere.

    Returns:
        Positive values; shares of right answers for binomial noise.
    """
    if noise is RecordedNoise.BINOMIAL:
        truth = np.clip(_SHARE_RIGHT * np.asarray(level), 0, 1)
        right = stats.binom.ppf(stats.norm.cdf(drawn), _QUESTIONS, truth)
        return np.asarray(right / _QUESTIONS, dtype=np.float64)
    # Times multiply: a logarithmic scale keeps them positive however heavy the tail.
    return np.asarray(level * np.exp(cv * drawn), dtype=np.float64)


def step(n: int, place: int, change: float) -> Array:
    """True levels of a series that changes by a fraction at a place."""
    levels = np.ones(n)
    levels[place:] += change
    return levels


def _gaussian(rng: Generator, n: int) -> Array:
    return rng.standard_normal(n)


def _heavy(rng: Generator, n: int) -> Array:
    return np.asarray(rng.standard_t(3, n) / np.sqrt(3.0), dtype=np.float64)


def _bimodal(rng: Generator, n: int) -> Array:
    within = np.sqrt(1 - _MODE**2)
    return np.asarray(_MODE * rng.choice((-1.0, 1.0), n) + within * rng.standard_normal(n))


def _drift(rng: Generator, n: int) -> Array:
    slope = rng.choice((-_DRIFT, _DRIFT))
    return np.asarray(rng.standard_normal(n) + slope * np.linspace(-0.5, 0.5, n))


def _autocorrelated(rng: Generator, n: int) -> Array:
    innovations = rng.standard_normal(n + _SETTLING) * np.sqrt(1 - _AUTOREGRESSION**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -_AUTOREGRESSION], innovations)[_SETTLING:])


def _constant(_rng: Generator, n: int) -> Array:
    return np.zeros(n)


_SHAPES: Final[Mapping[RecordedNoise, Callable[[Generator, int], Array]]] = MappingProxyType(
    {
        RecordedNoise.GAUSSIAN: _gaussian,
        RecordedNoise.HEAVY: _heavy,
        RecordedNoise.BIMODAL: _bimodal,
        RecordedNoise.DRIFT: _drift,
        RecordedNoise.AUTOCORRELATED: _autocorrelated,
        RecordedNoise.BINOMIAL: _gaussian,
        RecordedNoise.CONSTANT: _constant,
    }
)


RATE: Final = "output_throughput"
TASK: Final = "simulated"

STARTED: Final = datetime(2026, 1, 1, tzinfo=UTC)
_TRIAL_S: Final = 10.0
_LEVEL: Final = 100.0
_BUILD: Final = EngineBuild(
    label="simulated",
    name="simulated",
    release="0",
    accelerator="cpu",
    distribution="none",
    lock_digest="0" * 64,
    wheel_digest="0" * 64,
    fixes={},
    flags={},
)
_SCENARIO: Final = ScenarioRef("simulated", 1, "0" * 64, "none")
_TESTBED: Final = Testbed("simulated", "none", 1, 2**30, "none")
_HARNESS: Final = Harness("0", None)
_RATES: Final = "acceptance_rate.position_{}"
"""A family of metrics, so that a report can have as many as it takes."""


@dataclass(frozen=True, slots=True)
class SimulatedSession:
    """How two sides are measured.

    Attributes:
        pairs: Trials a side; they alternate A B B A.
        drift: How far the machine's speed wanders from the first trial to the last, a fraction.
        spikes: Share of trials that a neighbour makes slower by half.
    """

    pairs: int
    drift: float = 0.0
    spikes: float = 0.0

    def moments(self, side: int) -> NDArray[np.intp]:
        """Which trials of the session are a side's, counted from 0."""
        turns = np.arange(self.pairs)
        return np.asarray(2 * turns + np.where(turns % 2 == side, 0, 1))

    def disturbed(self, values: Array, side: int, rng: Generator) -> Array:
        """Let drift and spikes act on the trials of a side, one metric a row."""
        slowed = np.where(rng.random(values.shape) < self.spikes, 1 / 1.5, 1.0)
        progress = self.moments(side) / max(1, 2 * self.pairs - 1)
        return np.asarray(values * (1 + self.drift * progress) * slowed)


def rates_run(sides: Sequence[Array], session: SimulatedSession) -> Run:
    """Make a run of rates."""
    names = [RATE] if len(sides[0]) == 1 else [_RATES.format(k) for k in range(len(sides[0]))]
    made = sorted(
        (moment, side, column)
        for side in range(2)
        for column, moment in enumerate(session.moments(side))
    )
    trials = tuple(
        Trial(
            index=index,
            side=side,
            phase=Phase.PERFORMANCE,
            started_at=STARTED + index * timedelta(seconds=_TRIAL_S),
            duration_s=_TRIAL_S,
            samples=tuple(
                Sample(name, (_LEVEL * float(value),))
                for name, value in zip(names, sides[side][:, column], strict=True)
            ),
        )
        for index, (_, side, column) in enumerate(made)
    )
    return build_run(trials)


def answers_run(sides: Sequence[Sequence[bool]]) -> Run:
    """Make a run in which each side answered the same questions, right or wrong."""
    trials = tuple(
        Trial(
            index=side,
            side=side,
            phase=Phase.ACCURACY,
            started_at=STARTED + side * timedelta(seconds=_TRIAL_S),
            duration_s=_TRIAL_S,
            samples=(Sample(f"accuracy.{TASK}", tuple(map(float, right))),),
            answers=tuple(_answer(k, bool(correct)) for k, correct in enumerate(right)),
        )
        for side, right in enumerate(sides)
    )
    return build_run(trials)


def undecided(report: Report) -> Report:
    """Give a report its first metric alone, about which nothing is said yet."""
    blank = replace(
        report.comparisons[0],
        verdict=Verdict.INCONCLUSIVE,
        interval=None,
        p_adjusted=None,
        p_holm=None,
        minimum_detectable_effect=None,
        doubts=(),
    )
    return replace(report, comparisons=(blank,))


def build_run(trials: tuple[Trial, ...]) -> Run:
    """Make a run of two builds that differ in nothing but the side."""
    return Run(
        id="00000000",
        started_at=STARTED,
        finished_at=STARTED + len(trials) * timedelta(seconds=_TRIAL_S),
        harness=_HARNESS,
        scenario=_SCENARIO,
        testbed=_TESTBED,
        builds=(_BUILD, _BUILD),
        trials=trials,
    )


@cache
def _answer(number: int, correct: bool) -> Answer:
    return Answer(
        task=TASK,
        task_version="1",
        doc_id=number,
        doc_hash=f"{number}",
        prompt_hash=f"{number}",
        target_hash=f"{number}",
        prompt="",
        target="right",
        response="right" if correct else "wrong",
        correct=correct,
    )
