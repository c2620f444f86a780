"""Makes an oracle's file: right answers by transformers, or by a trusted engine."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.oracle import Drafts, Waves, answer
from hybridwatch.measurement.accuracy.oracle import Oracle, model_digest
from hybridwatch.measurement.completions import parse_completion, without_tokens
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.waves import drive_whole
from hybridwatch.records.trial_parts import DIGITS, Completion
from hybridwatch.scenarios.expansion import expand
from hybridwatch.scenarios.scenario import Scenario

Trials = tuple[tuple[Completion, ...], ...]


def list_trials(scenario: Scenario, count: int) -> list[Waves]:
    """Make the requests of a scenario's contract trials, as ``measurement.phase`` does."""
    workload = scenario.workload
    return [expand(workload.waves, workload.seed + number) for number in range(count)]


def by_transformers(
    scenario: Scenario, model: Path, build: BuildRequest, count: int, drafts: Drafts = ()
) -> tuple[Mapping[str, str], Trials]:
    """Have the requests answered by transformers' plain path, in float32 on the processor.

    The first of the pair says by what. Drafts save time and change nothing.
    """
    planned = list_trials(scenario, count)
    known = [[one for one in trial if one.tokens] for trial in drafts]
    found = answer(build.spec, model, [_with_right_answers(waves) for waves in planned], known)
    pairs = zip(planned, found.trials, strict=True)
    trials = tuple(tuple(_in_place(waves, map(read_answered, trial))) for waves, trial in pairs)
    return found.made_by, trials


def _with_right_answers(waves: Waves) -> Waves:
    return [
        replace(wave, requests=tuple(one for one in wave.requests if one.has_right_answer))
        for wave in waves
    ]


def _in_place(waves: Waves, answers: Iterator[Completion]) -> Iterator[Completion]:
    """Put answers to the requests that have one; the others have none."""
    for wave in waves:
        for request in wave.requests:
            right = request.has_right_answer
            yield next(answers) if right else without_tokens(request.prompt)


def by_engine(
    scenario: Scenario, models: Path, build: BuildRequest, count: int
) -> tuple[Mapping[str, str], Trials]:
    """Have the requests answered by an engine that is trusted: fixed, no graphs, no drafts."""
    with (
        tempfile.TemporaryDirectory(prefix="hybridwatch-") as work,
        EnginePool(scenario, [build], models, Path(work), lambda _: None) as pool,
    ):
        trials = tuple(answered_by(pool, waves) for waves in list_trials(scenario, count))
        identity = pool.identify(0)
    made_by = {"build": identity.label, "wheel": identity.wheel_digest}
    return {**made_by, "dtype": scenario.engine.dtype}, trials


def answered_by(pool: EnginePool, waves: Waves) -> tuple[Completion, ...]:
    """Have one trial answered by the first side of an engine pool: fixed, no graphs, no drafts."""
    engine = pool.make_ready(0)
    engine.settle(pool.reference(0))
    answered = drive_whole(engine, waves)
    requests = (request for wave in waves for request in wave.requests)
    known = (one for one, r in zip(answered, requests, strict=True) if r.has_right_answer)
    return tuple(_in_place(waves, known))


def build_oracle(
    scenario: Scenario, model: Path, command: str, made: tuple[Mapping[str, str], Trials]
) -> Oracle:
    """Put the answers together with where they come from."""
    made_by, trials = made
    return Oracle(
        schema_version=1,
        scenario=scenario.id,
        model=scenario.model,
        model_digest=model_digest(model),
        made_by=dict(made_by),
        command=command,
        seed=scenario.workload.seed,
        trials=trials,
    )


def read_answered(answered: Mapping[str, Any]) -> Completion:
    """Read an answer of the plugin as an engine's, whose logarithms know no bias or penalties."""
    top: Sequence[Sequence[tuple[int, float]]] = answered["top"]
    choice = {
        "token_ids": answered["tokens"],
        "logprobs": {
            "token_logprobs": [alternatives[0][1] for alternatives in top],
            "top_logprobs": [{str(int(t)): value for t, value in pairs} for pairs in top],
        },
    }
    logprobs = tuple(min(0.0, round(value, DIGITS)) for value in answered["logprobs"])
    return replace(parse_completion(answered["prompt"], choice), logprobs=logprobs)
