"""Right answers from outside the engine, as files in ``oracles/``.

An engine that is wrong with and without graphs differs in nothing from itself. What shares no code
with it answers once, and trials count who differs: ``contract.wrong_answers``.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hybridwatch.errors import MeasurementError
from hybridwatch.records.fields import build_adapter
from hybridwatch.records.trial_parts import NEAR_TIE_FLOAT32, Completion, position_of_parting
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
