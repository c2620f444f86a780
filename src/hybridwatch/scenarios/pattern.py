"""The pattern language: which requests come, how long they are, and when they come and go.

A workload is a row of waves; ``expansion`` makes the requests of them from a seed.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny
from pydantic_core import PydanticCustomError

from hybridwatch.scenarios.sampling import (
    DEFAULT_PARAMS,
    SamplingParams,
    contradictions_of_params,
)
from hybridwatch.scenarios.trace import TracedRequest
from hybridwatch.scenarios.validation import (
    Concurrency,
    Contradiction,
    Count,
    Part,
    Seed,
    Tokens,
)

MAX_TOKENS: Final = 1_048_576


class Span(Part):
    """How long something is: one of the lengths ``k * multiple_of + plus`` from low to high."""

    low: Tokens = Field(alias="from")
    high: Tokens = Field(alias="to")
    multiple_of: Tokens = 1
    plus: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0

    def _contradictions(self) -> Iterator[Contradiction]:
        if not self.lengths:
            wanted = f"a length {self.multiple_of}k + {self.plus}"
            yield "", f"expected {wanted} from {self.low} to {self.high}, found none"

    @property
    def lengths(self) -> range:
        """Every length that can be drawn, ascending."""
        steps = max(0, math.ceil((self.low - self.plus) / self.multiple_of))
        return range(self.plus + steps * self.multiple_of, self.high + 1, self.multiple_of)

    def at(self, unit: float) -> int:
        """The length at a place from 0 (the shortest) to just below 1 (the longest)."""
        return self.lengths[int(unit * len(self.lengths))]

    def of(self, _request: int, unit: float) -> int:
        """The length of a request, by its number in the wave and what it has drawn."""
        return self.at(unit)

    def bounds(self, _request: int) -> tuple[int, int]:
        """The shortest and the longest that a request can get."""
        return self.lengths[0], self.lengths[-1]


class LengthsRow(Span):
    """One length for each request, in the order of the requests; nothing is drawn."""

    each: tuple[Tokens, ...] = Field(strict=False, min_length=1)

    def of(self, request: int, _unit: float) -> int:
        """The length of a request."""
        return self.each[request]

    def bounds(self, request: int) -> tuple[int, int]:
        """The length of a request, twice."""
        return self.each[request], self.each[request]


def _read_length(value: object) -> object:
    """Read the short forms: a number alone is a span of that one length, a list is a row."""
    if type(value) is int:
        return {"from": _checked(value, 1), "to": value}
    if isinstance(value, list):
        each = tuple(_checked(item, 1) for item in value)
        return LengthsRow.model_validate({"from": min(each), "to": max(each), "each": each})
    return value


def _checked(value: object, least: int, most: int = MAX_TOKENS) -> int:
    if type(value) is not int or not least <= value <= most:
        raise PydanticCustomError("length", "not a length")
    return value


def one_or_each(least: int, most: int) -> Any:
    """Make the validator of a number for all requests of a wave, or a list with one for each."""

    def read(value: object) -> int | tuple[int, ...]:
        if isinstance(value, (list, tuple)) and value:
            return tuple(_checked(item, least, most) for item in value)
        return _checked(value, least, most)

    number = Annotated[int, Field(ge=least, le=most)]
    return BeforeValidator(read, json_schema_input_type=number | list[number])


Length = Annotated[
    SerializeAsAny[Span],
    BeforeValidator(_read_length, json_schema_input_type=Tokens | Span | list[Tokens]),
]
"""A length in a file: an integer, a table with ``from`` and ``to``, or a list of integers."""

SharedTokens = Annotated[int | tuple[int, ...], one_or_each(0, MAX_TOKENS)]
Priority = Annotated[int | tuple[int, ...], one_or_each(-1000, 1000)]


Arrival = Literal["together", "queue", "poisson", "steps", "trace"]
MAX_RANKS: Final = 8
MAX_STEPS: Final = 100_000
LONGEST_IDLE_S: Final = 5
"""Nothing in an engine waits so long for its next request; a trial has seconds."""

Step = Annotated[int, Field(ge=0, le=MAX_STEPS)]
"""An engine step by its number, counted from the begin of a wave."""


class Abort(Part):
    """A client that goes away before a ``step`` from its ``request``, unless answered."""

    request: Annotated[int, Field(ge=0, le=1_000_000)]
    step: Step


class Wave(Part):
    """Requests that belong together; the next wave starts when the engine has no more of them.

    ``scenarios/README.md`` says what each key means.
    """

    requests: Count
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    arrival: Arrival = "together"
    max_concurrency: Concurrency | None = None
    rate: Annotated[float, Field(ge=0.001, le=10_000)] | None = None
    at_step: tuple[Step, ...] = Field(default=(), strict=False)
    trace: tuple[TracedRequest, ...] = Field(default=(), strict=False)
    aborts: tuple[Abort, ...] = Field(default=(), strict=False)
    overlap_after_steps: Step | None = None
    idle_s: Annotated[float, Field(ge=0, le=LONGEST_IDLE_S)] = 0.0
    token_budget: Tokens | None = None
    input_tokens: Length
    output_tokens: Length
    early_finish: Annotated[float, Field(ge=0, le=1)] = 0.0
    shared_prefix_tokens: SharedTokens = 0
    prefixes: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    first_prefix: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    text: Literal["random", "recall"] = "random"
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    sampling_seed: Seed | None = None
    n: Annotated[int, Field(ge=1, le=16)] = 1
    sampling_params: tuple[SamplingParams, ...] = Field(default=(), strict=False)
    adapters: tuple[str, ...] = Field(default=(), strict=False)
    priority: Priority = 0
    continues: bool = False
    again: bool = False
    rank: Annotated[int, Field(ge=0, le=MAX_RANKS - 1)] | None = None

    def _contradictions(self) -> Iterator[Contradiction]:
        yield from _contradictions_of_arrival(self)
        yield from _contradictions_of_rows(self)
        yield from _contradictions_of_steps(self)
        yield from _contradictions_of_aborts(self)
        yield from _contradictions_of_trace(self)
        yield from _contradictions_of_prefix(self)
        yield from _contradictions_of_sampling(self)

    @property
    def counts_steps(self) -> bool:
        """Whether requests come or go at engine steps, so that the engine must be held."""
        by_step = self.arrival == "steps" or bool(self.aborts)
        return by_step or self.overlap_after_steps is not None

    @property
    def can_be_continued(self) -> bool:
        """Whether each request has one answer that is the same every time."""
        return not self.aborts and not self.temperature and not self._has_prompt_logprobs

    @property
    def _has_prompt_logprobs(self) -> bool:
        return any(params.prompt_logprobs is not None for params in self.sampling_params)

    def find_params(self, request: int) -> SamplingParams:
        """What else a request asks of its answer."""
        params = self.sampling_params or (DEFAULT_PARAMS,)
        return params[request % len(params)]

    def find_adapter(self, request: int) -> str:
        """The adapter that a request names; empty for none."""
        return self.adapters[request % len(self.adapters)] if self.adapters else ""

    def find_prefix(self, request: int) -> int:
        """Tokens of the shared prefix of a request."""
        shared = self.shared_prefix_tokens
        return shared if isinstance(shared, int) else shared[request]

    def find_priority(self, request: int) -> int:
        """Priority of a request."""
        return self.priority if isinstance(self.priority, int) else self.priority[request]

    @property
    def longest_prefix(self) -> int:
        """Tokens of the longest shared prefix."""
        shared = self.shared_prefix_tokens
        return shared if isinstance(shared, int) else max(shared)

    @property
    def longest_request(self) -> int:
        """Most tokens of a prompt and its answer together."""
        lengths = self.input_tokens, self.output_tokens
        rowed = any(isinstance(length, LengthsRow) for length in lengths)
        numbers = range(self.requests if rowed else 1)
        return max(sum(length.bounds(number)[1] for length in lengths) for number in numbers)


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


def _contradictions_of_rows(wave: Wave) -> Iterator[Contradiction]:
    rows = {
        "at_step": wave.at_step or None,
        "trace": wave.trace or None,
        "input_tokens": getattr(wave.input_tokens, "each", None),
        "output_tokens": getattr(wave.output_tokens, "each", None),
        "shared_prefix_tokens": wave.shared_prefix_tokens,
        "priority": wave.priority,
    }
    for key, row in rows.items():
        if isinstance(row, tuple) and len(row) != wave.requests:
            wanted = f"one entry for each of {wave.requests} requests"
            yield key, f"expected {wanted}, found {len(row)}"


def _contradictions_of_steps(wave: Wave) -> Iterator[Contradiction]:
    if wave.arrival == "steps" and not wave.at_step:
        yield "at_step", 'missing; arrival "steps" needs it'
    if wave.arrival != "steps" and wave.at_step:
        found = f'found it with arrival "{wave.arrival}"'
        yield "at_step", f'expected only with arrival "steps", {found}'
    if wave.arrival in {"queue", "poisson", "trace"}:
        wanted = 'expected only with arrival "together" or "steps"'
        found = f'found it with arrival "{wave.arrival}"'
        for key in ("aborts", "overlap_after_steps"):
            if getattr(wave, key) not in {(), None}:
                yield key, f"{wanted}, {found}"
    if wave.overlap_after_steps is not None:
        yield from _contradictions_of_overlap(wave)


def _contradictions_of_aborts(wave: Wave) -> Iterator[Contradiction]:
    numbers = [abort.request for abort in wave.aborts]
    if len(set(numbers)) < len(numbers):
        yield "aborts", f"expected each request once, found {numbers}"
    for at, abort in enumerate(wave.aborts):
        if abort.request >= wave.requests:
            most = f"less than requests ({wave.requests})"
            yield f"aborts[{at}].request", f"expected {most}, found {abort.request}"
        elif abort.request < len(wave.at_step) and abort.step < wave.at_step[abort.request]:
            least = f"at least its at_step ({wave.at_step[abort.request]})"
            yield f"aborts[{at}].step", f"expected {least}, found {abort.step}"


def _contradictions_of_trace(wave: Wave) -> Iterator[Contradiction]:
    if (wave.arrival == "trace") != bool(wave.trace):
        wanted = 'expected "trace" with workload.trace, and with it alone'
        yield "arrival", f'{wanted}, found "{wave.arrival}"'
    for key in ("repeat", "early_finish", "shared_prefix_tokens", "text", "continues", "again"):
        found = getattr(wave, key)
        if wave.trace and found != Wave.model_fields[key].default:
            yield key, f"expected none in a wave of a trace, found {found}"


def _contradictions_of_overlap(wave: Wave) -> Iterator[Contradiction]:
    whole = {
        "repeat": (wave.repeat, 1),
        "idle_s": (wave.idle_s, 0),
        "token_budget": (wave.token_budget, None),
        "continues": (wave.continues, False),
        "again": (wave.again, False),
    }
    for key, (value, default) in whole.items():
        if value != default:
            yield key, "expected none in a wave that overlaps the one before"


def _contradictions_of_sampling(wave: Wave) -> Iterator[Contradiction]:
    if wave.temperature and wave.sampling_seed is None:
        yield "sampling_seed", "missing; answers with a temperature need it to be given twice"
    for key, value, default in (("sampling_seed", wave.sampling_seed, None), ("n", wave.n, 1)):
        if not wave.temperature and value != default:
            yield key, f"expected only with a temperature above 0, found {value}"
    if wave.n > 1 and wave.aborts:
        yield "n", f"expected 1 in a wave with aborts, found {wave.n}"
    if wave.n > 1 and any(params.structured_outputs for params in wave.sampling_params):
        yield "n", f"expected 1 in a wave with structured_outputs, found {wave.n}"
    if wave.continues and wave._has_prompt_logprobs:  # noqa: SLF001 - of this module
        yield "sampling_params", "expected no prompt_logprobs in a wave that continues another"
    shortest = 1 if wave.early_finish else wave.output_tokens.lengths[0]
    params, draws = wave.sampling_params, wave.temperature > 0
    yield from contradictions_of_params(params, wave.requests, shortest, draws=draws)


def _contradictions_of_prefix(wave: Wave) -> Iterator[Contradiction]:
    if wave.continues and wave.longest_prefix:
        yield "shared_prefix_tokens", "expected none in a wave that continues the one before"
    if wave.continues and wave.repeat > 1:
        yield "repeat", f"expected 1 in a wave that continues the one before, found {wave.repeat}"
    if wave.continues and wave.again:
        yield "again", "expected false in a wave that continues the one before, found true"
    yield from _contradictions_of_shares(wave)
    for key, value, default in (
        ("prefixes", wave.prefixes, 1),
        ("first_prefix", wave.first_prefix, 0),
    ):
        if not wave.longest_prefix and value != default:
            yield key, f"expected only with shared_prefix_tokens, found {value}"


def _contradictions_of_shares(wave: Wave) -> Iterator[Contradiction]:
    row = wave.shared_prefix_tokens
    if isinstance(row, tuple) and wave.text == "recall":
        yield "shared_prefix_tokens", 'expected one number with text "recall", found a list'
    rows = [row, getattr(wave.input_tokens, "each", 0)]
    if any(isinstance(one, tuple) and len(one) != wave.requests for one in rows):
        return  # said already
    rowed = any(isinstance(one, tuple) for one in rows)
    for number in range(wave.requests if rowed else 1):
        shared, shortest = wave.find_prefix(number), wave.input_tokens.bounds(number)[0]
        if shortest <= shared:
            where = f" of request {number}" if rowed else ""
            most = f"more than shared_prefix_tokens ({shared}){where}"
            yield "input_tokens", f"expected {most}, found {shortest}"
            return
