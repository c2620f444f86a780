"""Parts of a trial besides samples: completions, close calls, and the host's waits and phases.

``results/README.md`` says what each key holds.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, Self, TypeAlias

from pydantic import Field, GetCoreSchemaHandler, GetPydanticSchema, model_validator
from pydantic_core import CoreSchema, core_schema

from hybridwatch.records.fields import (
    MOST_VALUES,
    Count,
    Duration,
    Id,
    IfAny,
    IfKnown,
    Items,
    Name,
    RecordPart,
    Whole,
)

CLOSE: Final = 0.5
"""Nats within which a token that was not chosen is kept with the chosen one."""
NEAR_TIE_FLOAT32: Final = 0.001
"""Nats that a token may lie behind the chosen one for the choice to be rounding. Float32 logarithms
of one model differ by about 1e-5 between two ways to compute them."""
NEAR_TIE_HALF: Final = 0.25
"""The same of half precision: a logit of 16 to 32 is rounded to 0.125 in bfloat16."""
NEAR_TIE_ONE_ARITHMETIC: Final = 0.0001
"""The same where only who shares a step differs: trials of one engine are 1e-5 apart by it."""
DIGITS: Final = 5
"""Digits of a logarithm: a hundredth of the smallest gap of interest."""


class CloseCall(NamedTuple):
    """A token that was nearly chosen, and how far behind its logarithm lies, in nats."""

    position: int
    token: int
    gap: float


_Logarithm: TypeAlias = Annotated[float, Field(ge=-1e30, le=0)]
_Gap: TypeAlias = Annotated[float, Field(ge=0, le=CLOSE)]
_MANY: Final = Field(max_length=MOST_VALUES, fail_fast=True)


def _of_three(_: type, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Read a close call from a list of three; pydantic would take an object of them as well."""
    three = handler(tuple[Whole, Whole, _Gap])
    return core_schema.no_info_after_validator_function(CloseCall._make, three)


_CloseCall: TypeAlias = Annotated[CloseCall, GetPydanticSchema(_of_three)]


@dataclass(frozen=True, slots=True)
class Completion(RecordPart):
    """A greedy answer.

    ``tokens`` is empty where the engine's logarithms are no numbers, so that its server refused to
    send them. ``is_wrong`` is whether they differ by more than a near tie.
    """

    prompt: Id
    tokens: Annotated[tuple[Whole, ...], _MANY]
    logprobs: IfAny[Annotated[tuple[_Logarithm, ...], _MANY]] = ()
    close_calls: IfAny[Annotated[tuple[_CloseCall, ...], _MANY]] = ()
    is_wrong: IfKnown[bool] = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.logprobs and len(self.logprobs) != len(self.tokens):
            raise ValueError(
                f"expected as many logprobs as tokens, {len(self.tokens)}, "
                f"found {len(self.logprobs)}"
            )
        return self

    def gap(self, position: int, token: int) -> float | None:
        """How far a token lies behind the chosen one; ``None`` if it is not known to be near."""
        found = (one.gap for one in self.close_calls if one[:2] == (position, token))
        return next(found, None)


def near_tie_within(types: Collection[str | None]) -> float:
    """Give the bound of near ties between engines whose weights are of these types."""
    return NEAR_TIE_FLOAT32 if set(types) == {"float32"} else NEAR_TIE_HALF


def position_of_parting(one: Completion, other: Completion) -> int | None:
    """Find the first position at which two answers differ; ``None`` when they are equal."""
    if one.tokens == other.tokens:
        return None
    pairs = enumerate(zip(one.tokens, other.tokens, strict=False))
    shorter = min(len(one.tokens), len(other.tokens))
    return next((at for at, (left, right) in pairs if left != right), shorter)


@dataclass(frozen=True, slots=True)
class CallSite(RecordPart):
    """A place in the engine's code that read values of tensors while steps were made."""

    place: Name
    reads: Count
    seconds: Duration
    kind: IfKnown[Name] = None


@dataclass(frozen=True, slots=True)
class StepPhase(RecordPart):
    """A part of an engine step; seconds of the host without other phases inside it."""

    name: Name
    seconds: Duration


@dataclass(frozen=True, slots=True)
class HostWork(RecordPart):
    """Where the reads and the time of a host-sync trial's steps lie, in the order of a step."""

    sites: Items[CallSite]
    phases: Items[StepPhase]
