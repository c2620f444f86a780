"""The tables of a scenario that say which work an engine gets: waves, the timed load, a sweep."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from hybridwatch.scenarios.pattern import Wave
from hybridwatch.scenarios.trace import Trace
from hybridwatch.scenarios.validation import (
    Concurrency,
    Contradiction,
    Count,
    Part,
    Rate,
    Seed,
    Tokens,
    refuse,
)

_REQUEST_KEYS: Final = (
    *("requests", "input_tokens", "output_tokens", "early_finish", "shared_prefix_tokens"),
    *("prefixes", "first_prefix", "text", "temperature", "sampling_seed", "n", "sampling_params"),
    "adapters",
)
"""Keys of a wave that define its requests; a repeating wave takes them from the one before."""


_Milliseconds = Annotated[float, Field(ge=0.001, le=10_000_000)]


class Objective(Part):
    """A service-level objective: what each request must keep, milliseconds, to count as goodput."""

    ttft_ms: _Milliseconds | None = None
    tpot_ms: _Milliseconds | None = None

    def _contradictions(self) -> Iterator[Contradiction]:
        if not self.bounds:
            yield "ttft_ms", "expected it or tpot_ms, found neither"

    @property
    def bounds(self) -> Mapping[str, float]:
        """Metric to the largest value that a request may have, seconds."""
        given = {"ttft": self.ttft_ms, "tpot": self.tpot_ms}
        return {metric: ms / 1000 for metric, ms in given.items() if ms is not None}


class Generation(Part):
    """The timed load, which no end of text ends; of a ``replay`` the numbers are the largest.

    ``search`` counts the loads of a trial that look for the highest rate that keeps ``slo``.
    """

    prompts: Count
    input_tokens: Tokens
    output_tokens: Tokens
    max_concurrency: Concurrency
    seed: Seed
    request_rate: Rate | None = None
    slo: Objective | None = None
    search: Annotated[int, Field(ge=3, le=12)] | None = None
    replay: Wave | None = None

    def _contradictions(self) -> Iterator[Contradiction]:
        if self.search is None:
            return
        if self.slo is None:
            yield "slo", "expected one with search, found none"
        if self.request_rate is not None:
            found = f"{self.request_rate:g}"
            yield "request_rate", f"expected none with search, which varies it, found {found}"
        if self.output_tokens == 1:
            why = "one token has no time per output token"
            yield "output_tokens", f"expected at least 2 with search: {why}"


class Workload(Part):
    """The work that an engine gets; trial k takes ``seed + k``. The loader fills in a ``trace``."""

    seed: Seed
    trace: Trace | None = None
    idle_dummy_batches: Annotated[int, Field(ge=0, le=4096)] = 0
    prelude: tuple[Wave, ...] = Field(default=(), strict=False)
    waves: tuple[Wave, ...] = Field(strict=False, min_length=1)
    generation: Generation

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, content: Any) -> Any:
        if not isinstance(content, Mapping):
            return content
        sections = {key: content[key] for key in ("prelude", "waves") if key in content}
        lists = {key: waves for key, waves in sections.items() if isinstance(waves, list)}
        refuse(*(one for lost in lists.items() for one in _contradictions_of_again(*lost)))
        return {**content, **{key: _completed(waves) for key, waves in lists.items()}}

    @property
    def all_waves(self) -> Iterator[tuple[str, Wave]]:
        """Every wave, the prelude's first, each with its key."""
        for section, waves in (("prelude", self.prelude), ("waves", self.waves)):
            for at, wave in enumerate(waves):
                yield f"workload.{section}[{at}]", wave


def _is_repeat(wave: object) -> bool:
    return isinstance(wave, Mapping) and wave.get("again") is True


def _contradictions_of_again(section: str, waves: list[Any]) -> Iterator[Contradiction]:
    for at, wave in enumerate(waves):
        if not _is_repeat(wave):
            continue
        key = f"{section}[{at}]"
        if at == 0:
            yield f"{key}.again", "expected a wave before it, found none"
        for name in _REQUEST_KEYS:
            if name in wave:
                why = "a wave that asks again takes it from the one before"
                yield f"{key}.{name}", f"expected none, {why}, found {wave[name]}"


def _completed(waves: list[Any]) -> list[Any]:
    done: list[Any] = []
    for wave in waves:
        before = done[-1] if done else None
        if _is_repeat(wave) and isinstance(before, Mapping):
            requests = {name: before[name] for name in _REQUEST_KEYS if name in before}
            done.append({**requests, **wave})
        else:
            done.append(wave)
    return done


def contradictions_of_waves(workload: Workload) -> Iterator[Contradiction]:
    """Yield each broken rule between waves as the key at fault and what is wrong with it."""
    for section, waves in (("prelude", workload.prelude), ("waves", workload.waves)):
        if waves:
            yield from _contradictions_of_first(f"workload.{section}[0]", waves[0])
        for at, (before, wave) in enumerate(pairwise(waves), start=1):
            yield from _contradictions_of_turn(f"workload.{section}[{at}]", before, wave)


def _contradictions_of_first(key: str, wave: Wave) -> Iterator[Contradiction]:
    for name in ("continues", "overlap_after_steps"):
        if getattr(wave, name) not in {False, None}:
            yield f"{key}.{name}", "expected a wave before it, found none"


def _contradictions_of_turn(key: str, before: Wave, wave: Wave) -> Iterator[Contradiction]:
    if wave.continues and wave.requests != before.requests:
        expected = f"as many as the wave that it continues ({before.requests})"
        yield f"{key}.requests", f"expected {expected}, found {wave.requests}"
    if wave.continues and not before.can_be_continued:
        wanted = "a wave before it without temperature, aborts, prompt_logprobs"
        yield f"{key}.continues", f"expected {wanted}"
    if wave.again and before.continues:
        yield f"{key}.again", "expected a wave before it that continues none"
    if (wave.again or wave.continues) and before.overlap_after_steps is not None:
        name = "again" if wave.again else "continues"
        yield f"{key}.{name}", "expected a wave before it that overlaps none"
    if wave.overlap_after_steps is not None and before.arrival not in {"together", "steps"}:
        wanted = 'expected a wave before it with arrival "together" or "steps"'
        yield f"{key}.overlap_after_steps", f'{wanted}, found "{before.arrival}"'
    if wave.overlap_after_steps is not None and (before.again or before.continues):
        wanted = "expected a wave before it that neither continues nor asks again"
        yield f"{key}.overlap_after_steps", wanted


FEWEST_POINTS: Final = 3
"""A line between two points has no shape."""
_MOST_POINTS: Final = 64


class Sweep(Part):
    """Loads that a performance trial goes through, rising, in place of the one of ``generation``.

    Goodput is counted where an ``slo`` is stated; the curve must detect the fault ``known_bad``.
    """

    max_concurrency: tuple[Concurrency, ...] = Field(
        default=(), strict=False, max_length=_MOST_POINTS
    )
    request_rate: tuple[Rate, ...] = Field(default=(), strict=False, max_length=_MOST_POINTS)
    slo: Objective | None = None
    known_bad: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")] | None = None

    def _contradictions(self) -> Iterator[Contradiction]:
        if self.max_concurrency and self.request_rate:
            yield "request_rate", "expected it or max_concurrency, found both"
        loads = self.loads
        if len(loads) < FEWEST_POINTS or any(later <= before for before, later in pairwise(loads)):
            found = ", ".join(f"{load:g}" for load in loads) or "none"
            yield self.knob, f"expected at least {FEWEST_POINTS} rising numbers, found {found}"

    @property
    def knob(self) -> str:
        """What is turned: a key of ``generation``."""
        return "request_rate" if self.request_rate else "max_concurrency"

    @property
    def loads(self) -> tuple[float, ...]:
        """The values of the knob, rising."""
        return self.request_rate or self.max_concurrency

    def at(self, load: float, generation: Generation) -> Generation:
        """Give the load of one point."""
        return generation.model_copy(update={self.knob: load})


def contradictions_of_sweep(sweep: Sweep | None, load: Generation) -> Iterator[Contradiction]:
    """Yield each broken rule between a sweep and the load that it varies."""
    if sweep is None:
        return
    most = sweep.max_concurrency[-1] if sweep.max_concurrency else load.max_concurrency
    if most > load.max_concurrency:
        expected = f"at most workload.generation.max_concurrency ({load.max_concurrency})"
        yield "sweep.max_concurrency", f"expected {expected}, found {most}"
    if load.output_tokens == 1:
        why = "one token has no time per output token"
        yield "workload.generation.output_tokens", f"expected at least 2 with a sweep: {why}"
    if load.replay is not None or load.slo is not None:
        yield "sweep", "expected none with workload.trace, nor with workload.generation.slo"
    if load.request_rate is not None:
        found = f"{load.request_rate:g}"
        yield "workload.generation.request_rate", f"expected none with a sweep, found {found}"
