"""Compares an engine's answers with an oracle's, and makes one by transformers or an engine."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.control import EngineControl
from hybridwatch.engines.oracle import Drafts, Waves, answer
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.accuracy.oracle import (
    Oracle,
    error_in,
    find_path,
    load,
    model_digest,
    wrong_among,
)
from hybridwatch.measurement.completions import parse_completion, without_tokens
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext, run_prelude
from hybridwatch.measurement.waves import drive_whole
from hybridwatch.metrics import WRONG_ANSWERS
from hybridwatch.records.run import Sample
from hybridwatch.records.trial_parts import DIGITS, Completion, near_tie_within
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.scenario import Scenario

_OUTDATED: Final = (
    "the oracle answers other requests than these: run hybridwatch oracle make {model} {scenario}"
)


class Checked(NamedTuple):
    """The answers, the count of wrong ones, or why there is none; neither without an oracle."""

    answered: tuple[Completion, ...]
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}  # noqa: RUF012 - never written to


def checked(
    home: Path,
    scenario: Scenario,
    number: int,
    waves: Sequence[PlannedWave],
    answered: tuple[Completion, ...],
) -> Checked:
    """Count the wrong answers of trial ``number``, if the home's oracle goes so far."""
    oracle = load(find_path(home, scenario.answered_by))
    if oracle is None or number >= len(oracle.trials):
        return Checked(answered)
    wrong = _wrong(waves, answered, oracle.trials[number], _bound(scenario))
    if wrong is None:
        why = _OUTDATED.format(model=scenario.model, scenario=scenario.answered_by)
        return Checked(answered, unsupported={WRONG_ANSWERS: why})
    marked = tuple(
        replace(one, is_wrong=bool(one.is_wrong) or is_wrong)
        for one, is_wrong in zip(answered, wrong, strict=True)
    )
    return Checked(marked, (Sample(WRONG_ANSWERS, (float(sum(wrong)),)),))


def _bound(scenario: Scenario) -> float:
    """Give the nats that rounding may account for."""
    return scenario.expect.oracle_within or near_tie_within({scenario.engine.dtype})


def _wrong(
    waves: Sequence[PlannedWave],
    answered: Sequence[Completion],
    right: Sequence[Completion],
    bound: float,
) -> tuple[bool, ...] | None:
    """Say of each answer whether it is wrong; of one that no oracle can know, it is not."""
    planned = [(wave, request) for wave in waves for request in wave.requests]
    if not len(planned) == len(answered) == len(right):
        return None
    known = [at for at, (_, request) in enumerate(planned) if request.has_right_answer]
    lengths = ((planned[at][1], len(right[at].tokens)) for at in known)
    if not all(request.can_have(length - request.echoed) for request, length in lengths):
        return None
    found = wrong_among(
        [answered[at] for at in known],
        [right[at] for at in known],
        [not planned[at][0].continues for at in known],
        bound,
    )
    if found is None:
        return None
    wrong = {at for at, is_wrong in zip(known, found, strict=True) if is_wrong}
    return tuple(at in wrong for at in range(len(answered)))


class WrongAnswer(NamedTuple):
    """A request of the plan, from 0, answered otherwise, and the first token that is not right."""

    trial: int
    request: int
    position: int
    why: str

    def __str__(self) -> str:
        return f"trial {self.trial}, request {self.request}: {self.why}"


def wrong_answers(
    trial: TrialContext, home: Path, trials: Sequence[Sequence[Completion]]
) -> Iterator[WrongAnswer]:
    """Have an engine answer every trial that an oracle has; it is as its side of the pool is."""
    scenario = trial.scenario
    bound = _bound(scenario)
    for number, right in enumerate(trials):
        trial.pool.make_ready(trial.side)
        now = replace(trial, number=number)
        run_prelude(now)
        waves = expand(scenario.workload.waves, scenario.workload.seed + number)
        found = checked(home, scenario, number, waves, drive_whole(now.engine, waves))
        if found.unsupported:
            raise MeasurementError(f"{scenario.id}: {next(iter(found.unsupported.values()))}")
        for request, (one, other) in enumerate(zip(found.answered, right, strict=True)):
            if error := error_in(one, other, bound) if one.is_wrong else None:
                yield WrongAnswer(number, request, *error)


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


def count_grammar_breaks(
    control: EngineControl, waves: Sequence[PlannedWave], answered: Sequence[Completion]
) -> int | None:
    """Count the answers that leave their grammars; ``None`` if no request names one.

    An answer without tokens, which the engine ended with an error, is no word either. Requests
    whose client went away are not counted.
    """
    planned = (request for wave in waves for request in wave.requests)
    answers = [
        (outputs.as_written(), one.tokens[request.echoed :], request.max_tokens)
        for request, one in zip(planned, answered, strict=True)
        if (outputs := request.sampling_params.structured_outputs) is not None
        and request.abort_at_step is None
    ]
    if not answers:
        return None
    return sum(at is not None for at in control.find_grammar_breaks(answers))
