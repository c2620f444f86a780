"""The pattern language: which requests come, how long they are, and when they come.

A workload is a row of waves; ``expansion`` makes the requests of them from a seed.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from hybridwatch.scenario.part import Concurrency, Contradiction, Count, Part, Tokens, refuse

Arrival = Literal["together", "queue", "poisson"]
MAX_TOKENS: Final = 1_048_576
MAX_RANKS: Final = 8


class Span(Part):
    """How long something is: one of the lengths ``k * multiple_of + plus`` from low to high.

    Attributes:
        low: The smallest length; ``from`` in a file.
        high: The largest length; ``to`` in a file.
        multiple_of: Lengths are so many apart, such as a block of the cache.
        plus: How far beyond a multiple.
    """

    low: Tokens = Field(alias="from")
    high: Tokens = Field(alias="to")
    multiple_of: Tokens = 1
    plus: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.lengths:
            wanted = f"a length {self.multiple_of}k + {self.plus}"
            refuse(("", f"expected {wanted} from {self.low} to {self.high}, found none"))
        return self

    @property
    def lengths(self) -> range:
        """Every length that can be drawn, ascending."""
        steps = max(0, math.ceil((self.low - self.plus) / self.multiple_of))
        return range(self.plus + steps * self.multiple_of, self.high + 1, self.multiple_of)

    def at(self, unit: float) -> int:
        """The length at a place from 0 (the shortest) to just below 1 (the longest)."""
        return self.lengths[int(unit * len(self.lengths))]


def _exactly(value: object) -> object:
    """Read the short form: a number alone is a span of that one length."""
    if type(value) is not int:
        return value
    if not 1 <= value <= MAX_TOKENS:
        raise PydanticCustomError("length", "not a length")
    return {"from": value, "to": value}


Length = Annotated[Span, BeforeValidator(_exactly, json_schema_input_type=Tokens | Span)]
"""A length in a file: an integer, or a table with ``from`` and ``to``."""


class Wave(Part):
    """Requests that belong together; the next wave starts when the engine has no more of them.

    Attributes:
        requests: How many.
        repeat: Times that the wave is made, each time with other texts.
        arrival: ``together``: all reach the scheduler in one engine step. ``queue``: at most
            ``max_concurrency`` are in flight, the next follows when one ends. ``poisson``: ``rate``
            arrive each second on average, whatever becomes of those before.
        max_concurrency: Of a queue, and of nothing else.
        rate: Of poisson arrivals, and of nothing else.
        input_tokens: Length of each prompt, its shared prefix included.
        output_tokens: Length of each answer; the end-of-text token is ignored.
        early_finish: Share of the requests that end early: after 1 to all of the tokens drawn,
            each as likely.
        shared_prefix_tokens: Length of the text with which requests start that share one.
        prefixes: How many such texts, taken in turn. Prefix number k of a workload is the same
            text in every wave, so that a wave can hit what an earlier one left in the cache.
        first_prefix: Number of the first prefix taken, to share another wave's or to avoid them.
        text: ``random`` letters, or ``recall``: a few keys with values, words, and at the end of
            the prompt the question for one value. With a shared prefix the values are in that.
        continues: Each request goes on from one of the wave before: its prompt and its answer, and
            then ``input_tokens`` of new text. The next turn of a conversation.
        rank: Data-parallel rank that gets the requests while the others idle; else the engine's
            load balancer chooses.
    """

    requests: Count
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    arrival: Arrival = "together"
    max_concurrency: Concurrency | None = None
    rate: Annotated[float, Field(ge=0.001, le=10_000)] | None = None
    input_tokens: Length
    output_tokens: Length
    early_finish: Annotated[float, Field(ge=0, le=1)] = 0.0
    shared_prefix_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    prefixes: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    first_prefix: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    text: Literal["random", "recall"] = "random"
    continues: bool = False
    rank: Annotated[int, Field(ge=0, le=MAX_RANKS - 1)] | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse(*_contradictions_of_arrival(self), *_contradictions_of_prefix(self))
        return self


def _contradictions_of_arrival(wave: Wave) -> Iterator[Contradiction]:
    for key, value, owner in (
        ("max_concurrency", wave.max_concurrency, "queue"),
        ("rate", wave.rate, "poisson"),
    ):
        if wave.arrival == owner and value is None:
            yield key, f'missing; arrival "{owner}" needs it'
        if wave.arrival != owner and value is not None:
            found = f'found {value:g} with arrival "{wave.arrival}"'
            yield key, f'expected only with arrival "{owner}", {found}'
    if wave.requests < (wave.max_concurrency or 0):
        least = f"max_concurrency ({wave.max_concurrency})"
        yield "requests", f"expected at least {least}, found {wave.requests}"


def _contradictions_of_prefix(wave: Wave) -> Iterator[Contradiction]:
    if wave.continues and wave.shared_prefix_tokens:
        yield "shared_prefix_tokens", "expected none in a wave that continues the one before"
    if wave.continues and wave.repeat > 1:
        yield "repeat", f"expected 1 in a wave that continues the one before, found {wave.repeat}"
    shared, shortest = wave.shared_prefix_tokens, wave.input_tokens.lengths[0]
    if shortest <= shared:
        most = f"more than shared_prefix_tokens ({shared})"
        yield "input_tokens", f"expected {most}, found {shortest}"
    for key, value, default in (
        ("prefixes", wave.prefixes, 1),
        ("first_prefix", wave.first_prefix, 0),
    ):
        if not shared and value != default:
            yield key, f"expected only with shared_prefix_tokens, found {value}"
