"""Right answers from outside the engine, in ``oracles/``: made, and held against an engine's.

An engine that is wrong with and without graphs differs in nothing from itself. What shares no code
with it answers once, and trials count who differs: ``contract.wrong_answers``.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.engines.builds import BuildRequest
from hybridwatch.engines.control import EngineControl
from hybridwatch.engines.oracle import Drafts, Waves, answer
from hybridwatch.errors import MeasurementError
from hybridwatch.measurement.completions import parse_completion, without_tokens
from hybridwatch.measurement.engine_pool import EnginePool
from hybridwatch.measurement.load import TrialContext, run_prelude
from hybridwatch.measurement.waves import drive_whole
from hybridwatch.metrics import WRONG_ANSWERS
from hybridwatch.records.fields import build_adapter
from hybridwatch.records.run import (
    DIGITS,
    NEAR_TIE_FLOAT32,
    Completion,
    Sample,
    near_tie_within,
    position_of_parting,
)
from hybridwatch.scenarios.expansion import PlannedWave, expand
from hybridwatch.scenarios.scenario import Scenario
from hybridwatch.system.home import layers

ORACLES: Final = "oracles"
"""Folder of a home."""
NO_NUMBERS: Final = "its logarithms are no numbers"
"""What is wrong with an answer without tokens."""


class Oracle(BaseModel):
    """Right answers to a scenario's contract trials, as their file has them.

    Attributes:
        model_digest: SHA-256 over the model's configuration and weights.
        made_by: What gave the answers: package or build, with its version.
        trials: The answers of each trial, in the order of the plan.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_version: Literal[1]
    scenario: str
    model: str
    model_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    made_by: dict[str, str]
    command: str
    seed: int
    trials: tuple[tuple[Completion, ...], ...]

    def render(self) -> str:
        """Give the text of the file, a line for each request."""
        head = self.model_dump(exclude={"trials"})
        trials = ",\n".join(
            "  [\n" + ",\n".join(f"   {_line(one)}" for one in trial) + "\n  ]"
            for trial in self.trials
        )
        return json.dumps(head, indent=1)[:-2] + f',\n "trials": [\n{trials}\n ]\n}}\n'


def find_path(home: Path, scenario: str) -> Path:
    """Say where the right answers to a scenario lie: those of a home before what is shipped."""
    own = find_own_path(home, scenario)
    places = [folder / own.relative_to(home / ORACLES) for folder in layers(home / ORACLES)]
    return next((path for path in reversed(places) if path.is_file()), own)


def find_own_path(home: Path, scenario: str) -> Path:
    """Say where right answers to a scenario are written."""
    return home / ORACLES / f"{scenario}.json"


def load(path: Path) -> Oracle | None:
    """Read right answers; ``None`` where there are none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    return _parsed(path, text)


@lru_cache(maxsize=8)  # read for every trial
def _parsed(path: Path, text: bytes) -> Oracle:
    try:
        return Oracle.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise MeasurementError(f"{path}: {place}: {first['msg']}") from error


class AnswerError(NamedTuple):
    """What is wrong with an answer, and at which token, from 0."""

    position: int
    why: str


def wrong_among(
    answered: Sequence[Completion],
    right: Sequence[Completion],
    fresh: Sequence[bool],
    bound: float,
) -> tuple[bool, ...] | None:
    """Say of each answer whether it is wrong; ``None`` if the oracle is older than the scenario.

    A turn that follows a wrong answer has another prompt than the oracle's, and is not wrong again;
    ``fresh`` prompts follow none. ``bound`` is as for ``error_in``.
    """
    if not len(answered) == len(right) == len(fresh):
        return None
    pairs = list(zip(answered, right, strict=True))
    if any(
        is_fresh and one.prompt != other.prompt
        for is_fresh, (one, other) in zip(fresh, pairs, strict=True)
    ):
        return None
    return tuple(
        one.prompt == other.prompt and error_in(one, other, bound) is not None
        for one, other in pairs
    )


def error_in(answer: Completion, right: Completion, bound: float) -> AnswerError | None:
    """Find the first token that rounding, of up to ``bound`` nats, cannot account for, if any."""
    if not answer.tokens:
        return AnswerError(0, NO_NUMBERS) if right.tokens else None
    at = position_of_parting(answer, right)
    same = len(right.tokens) if at is None else at
    pairs = list(zip(answer.logprobs, right.logprobs, strict=False))[:same]
    for place, (found, expected) in enumerate(pairs):
        if abs(found - expected) > bound:
            why = f"token {place}: expected logprob {expected:g}, found {found:g}"
            return AnswerError(place, why)
    if at is None:
        return None
    if at == min(len(answer.tokens), len(right.tokens)):
        return AnswerError(at, f"expected {len(right.tokens)} tokens, found {len(answer.tokens)}")
    gap = right.gap(at, answer.tokens[at])
    if gap is not None and gap <= bound:
        return None
    behind = "far" if gap is None else f"{gap:g} nats"
    tokens = f"expected {right.tokens[at]}, found {answer.tokens[at]}"
    return AnswerError(at, f"token {at}: {tokens}, which is {behind} behind")


def find_deviations(
    kept: Sequence[Sequence[Completion]], fresh: Sequence[Sequence[Completion]]
) -> Iterator[str]:
    """Say in what right answers differ from ones computed again, but for another rounding."""
    for trial, (old, new) in enumerate(zip(kept, fresh, strict=True)):
        if len(old) != len(new):
            yield f"trial {trial}: expected {len(new)} requests, found {len(old)}"
        for request, (one, other) in enumerate(zip(old, new, strict=False)):
            why = _deviation(one, other)
            if why:
                yield f"trial {trial}: request {request}: {why}"


def _deviation(kept: Completion, fresh: Completion) -> str:
    if kept.prompt != fresh.prompt:
        return f"prompt: expected {kept.prompt}, found {fresh.prompt}"
    error = error_in(fresh, kept, NEAR_TIE_FLOAT32)
    return error.why if error else ""


def model_digest(folder: Path) -> str:
    """Distinguish models: SHA-256 over the names and bytes of configuration and weights."""
    total = hashlib.sha256()
    for path in sorted([folder / "config.json", *folder.glob("*.safetensors")]):
        total.update(f"{path.name}\n".encode())
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def _line(one: Completion) -> str:
    form = build_adapter(Completion)
    plain = form.dump_python(form.validate_python(one), mode="json")
    return json.dumps(plain, separators=(",", ":"))


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
