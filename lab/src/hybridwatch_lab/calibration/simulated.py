"""Runs that never happened: two equal or differing engines, measured in turn, with known truth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hybridwatch.analysis.verdict import Report, Verdict
from hybridwatch.records.identity import EngineBuild, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import Answer, Phase, Run, Sample, Trial
from hybridwatch_lab.calibration.noise import Array

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
        """Tell which trials of the session are a side's, counted from 0."""
        turns = np.arange(self.pairs)
        return np.asarray(2 * turns + np.where(turns % 2 == side, 0, 1))

    def disturbed(self, values: Array, side: int, rng: Generator) -> Array:
        """Let drift and spikes act on the trials of a side, one metric a row."""
        slowed = np.where(rng.random(values.shape) < self.spikes, 1 / 1.5, 1.0)
        progress = self.moments(side) / max(1, 2 * self.pairs - 1)
        return np.asarray(values * (1 + self.drift * progress) * slowed)


def rates_run(sides: Sequence[Array], session: SimulatedSession) -> Run:
    """Make a run of rates.

    Args:
        sides: Two arrays, a metric a row and a trial a column.
        session: In which order trials are made.
    """
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
