"""A made-up store of any size, to measure the index and the dashboard on.

::

    python -m tests.unit.database.synthetic FOLDER --values 1000000 --seed 1

Nothing in it was measured, and nobody shall take it for that: the testbed's name, the harness and
the wheels say so, and no folder called ``results`` is ever written. The files are real records,
written by the store, so that reading them takes what reading records takes.
"""

import hashlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from pathlib import Path
from typing import Final

import click
import numpy as np

from hybridwatch.errors import HybridwatchError
from hybridwatch.records.codec import encode
from hybridwatch.records.identity import EngineBuild, FixState, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import Answer, Failure, MachineState, Phase, Run, Sample, Trial
from hybridwatch.records.store import Intake

VALUES_PER_RUN: Final = 500
"""Numbers that the index keeps of one run; ``tests/unit/database`` counts them."""

REVISION: Final = "synthetic: never measured"
TESTBED: Final = Testbed("synthetic-2c-000000", "none: made up", 2, 16 * 2**30, "none")

_FIX: Final = "padded-rows-prefilling"
_GROUPS: Final = ("smoke", "curated", "reported")
_PER_GROUP: Final = 8
_RELEASES: Final = ("0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0")
_FIRST_NIGHT: Final = datetime(2026, 1, 1, 22, tzinfo=UTC)
_TRIALS: Final = 20
_COUNTING_TRIALS: Final = 10
_REQUESTS: Final = 4
_DOCUMENTS: Final = 40
_SPREAD: Final = 0.02
_STEP: Final = 0.12
"""By how much every fourth scenario's candidate gets slower from the middle of the nights on."""

_FAILS: Final = 50
"""One run in so many has a trial that failed."""

_RATES: Final = {"output_throughput": 400.0, "request_throughput": 12.0}
_TIMES: Final = {"ttft": 0.05, "tpot": 0.004, "itl": 0.004, "e2el": 0.2}
_EXPLAINING: Final = {"engine_step_rate": 110.0, "batch_occupancy": 3.6}
_CONTRACTS: Final = (
    "contract.padded_rows_prefilling",
    "contract.slots_off_block_table",
    "contract.wrong_tokens",
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """One run to be made up.

    Attributes:
        bad: Whether the contender is the same without the fix, or else a candidate for the next.
        slower: What the contender's times are multiplied by.
    """

    night: int
    scenario: int
    release: str
    bad: bool
    slower: float


def write_store(
    folder: Path, values: int, seed: int, say: Callable[[int, int], None] | None = None
) -> int:
    """Fill a folder with as many made-up records as give ``values``; gives how many these are."""
    if "results" in folder.resolve().parts:
        raise HybridwatchError(f"{folder}: made-up records do not belong below a folder 'results'")
    total = math.ceil(values / VALUES_PER_RUN)
    intake = Intake(folder)
    for number, plan in enumerate(_plans(total), start=1):
        run = _run(plan, np.random.default_rng([seed, number]), f"{number:08x}")
        intake.add(run, encode(run))
        if intake.is_full or number == total:
            _written(intake)
            if say:
                say(number, total)
    return total


def _written(intake: Intake) -> None:
    for reason in intake.write().values():
        raise HybridwatchError(reason)


def _plans(total: int) -> Iterator[_Plan]:
    cells = list(product(range(len(_GROUPS) * _PER_GROUP), _RELEASES, (False, True)))
    nights = math.ceil(total / len(cells))
    every = (
        _Plan(night, scenario, release, bad, _slower(scenario, bad or night < nights // 2))
        for night in range(nights)
        for scenario, release, bad in cells
    )
    return islice(every, total)


def _slower(scenario: int, spared: bool) -> float:
    return 1.0 if spared or scenario % 4 else 1 + _STEP


def _run(plan: _Plan, rng: np.random.Generator, run_id: str) -> Run:
    started = _FIRST_NIGHT + timedelta(days=plan.night, seconds=int(run_id, 16) % 28_800)
    trials: list[Trial] = []
    for phase, side, samples in _samples(plan, rng):
        correct = [value for sample in samples for value in sample.values]
        trials.append(
            Trial(
                index=len(trials),
                side=side,
                phase=phase,
                started_at=started + timedelta(seconds=3 * len(trials)),
                duration_s=2.5,
                samples=samples,
                answers=tuple(_answers(correct)) if phase is Phase.ACCURACY else (),
                surroundings=_machine_section(rng) if phase is Phase.PERFORMANCE else None,
            )
        )
    if int(run_id, 16) % _FAILS == 0:
        failure = Failure("made up: this trial was never meant to succeed", "")
        trials.append(replace(trials[-1], index=len(trials), samples=(), failure=failure))
    return Run(
        id=run_id,
        started_at=started,
        finished_at=started + timedelta(seconds=3 * len(trials)),
        harness=Harness("0", REVISION),
        scenario=_scenario(plan.scenario),
        testbed=TESTBED,
        builds=(_build(plan.release), _build(plan.release, bad=plan.bad, candidate=not plan.bad)),
        trials=tuple(trials),
    )


def _samples(
    plan: _Plan, rng: np.random.Generator
) -> Iterator[tuple[Phase, int, tuple[Sample, ...]]]:
    """Every trial of a run: its phase, its side, what was seen."""
    for side in (0, 1, 1, 0, 0, 1):
        rows = float(rng.integers(20, 60)) if plan.bad and side else 0.0
        yield Phase.CONTRACT, side, tuple(Sample(name, (rows,)) for name in _CONTRACTS)
    for side in (0, 1):
        right = rng.random(_DOCUMENTS) < (0.6 if plan.bad and side else 0.96)
        yield Phase.ACCURACY, side, (Sample("accuracy.recall", tuple(map(float, right))),)
    for turn in range(2 * _TRIALS):
        side = (turn + turn // 2) % 2
        yield Phase.PERFORMANCE, side, tuple(_timed(rng, plan.slower if side else 1.0))
    for turn in range(2 * _COUNTING_TRIALS):
        side = (turn + turn // 2) % 2
        build_time = _drawn(rng, 0.0005 * (plan.slower if side else 1.0), 1)
        syncs = Sample("host_syncs_per_step", (15.0 + 8.0 * (plan.bad and side),))
        yield Phase.HOST_SYNC, side, (Sample("metadata_build_time", build_time), syncs)


def _timed(rng: np.random.Generator, slower: float) -> Iterator[Sample]:
    for name, center in (_RATES | _EXPLAINING).items():
        yield Sample(name, _drawn(rng, center / slower, 1))
    for name, center in _TIMES.items():
        yield Sample(name, _drawn(rng, center * slower, _REQUESTS))


def _drawn(rng: np.random.Generator, center: float, count: int) -> tuple[float, ...]:
    return tuple((center * np.exp(rng.normal(0.0, _SPREAD, count))).tolist())


def _machine_section(rng: np.random.Generator) -> MachineState:
    (kernel,) = _drawn(rng, 0.01, 1)
    return MachineState(0.98 * kernel, kernel, 0.02, 3e9)


def _answers(correct: list[float]) -> Iterator[Answer]:
    for number, right in enumerate(correct):
        yield Answer(
            task="recall",
            task_version="1.0",
            doc_id=number,
            doc_hash=_digest(f"document {number}"),
            prompt_hash=_digest(f"prompt {number}"),
            target_hash=_digest(f"target {number}"),
            prompt=f"made-up question {number}?",
            target="yes",
            response="yes" if right else "no",
            correct=bool(right),
        )


def _scenario(number: int) -> ScenarioRef:
    name = f"{_GROUPS[number // _PER_GROUP]}/synthetic-{number:02}"
    return ScenarioRef(name, 1, _digest(name), _FIX)


def _build(release: str, *, bad: bool = False, candidate: bool = False) -> EngineBuild:
    name = f"synthetic-{release}-candidate" if candidate else f"synthetic-{release}"
    return EngineBuild(
        label=f"{name}~{_FIX}" if bad else name,
        name=name,
        release=release,
        accelerator="cpu",
        distribution="none: made up",
        lock_digest=_digest(f"lock {release}"),
        wheel_digest=_digest(f"wheel {name}"),
        fixes={_FIX: FixState.REVERTED if bad else FixState.PRESENT},
        flags={},
    )


def _digest(text: str) -> str:
    return hashlib.sha256(f"synthetic {text}".encode()).hexdigest()


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--values", type=click.IntRange(1), default=1_000_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
def command(folder: Path, values: int, seed: int) -> None:
    """Fill FOLDER with made-up records that give the index so many values."""

    def say(done: int, total: int) -> None:
        click.echo(f"{done} of {total} records", err=True)

    try:
        write_store(folder, values, seed, say)
    except HybridwatchError as error:
        sys.exit(f"hybridwatch: {error}")


if __name__ == "__main__":
    command()
