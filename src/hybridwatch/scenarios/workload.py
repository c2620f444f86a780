"""The tables of a scenario that say which work an engine gets, and the rules between waves."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from hybridwatch.scenarios.part import (
    Concurrency,
    Contradiction,
    Count,
    Part,
    Rate,
    Seed,
    Tokens,
    refuse,
)
from hybridwatch.scenarios.pattern import Wave

_ASKED: Final = (
    "requests",
    "input_tokens",
    "output_tokens",
    "early_finish",
    "shared_prefix_tokens",
    "prefixes",
    "first_prefix",
    "text",
    "temperature",
    "sampling_seed",
    "n",
)
"""Keys of a wave that say what is asked; one that asks again takes them from the wave before."""


class Generation(Part):
    """The load under which everything is timed.

    Attributes:
        prompts: Requests of one trial.
        input_tokens: Length of each prompt.
        output_tokens: Length of each answer; the end-of-text token is ignored.
        max_concurrency: Requests in flight at once.
        seed: Of the prompts; the same seed gives the same prompts.
        request_rate: Requests that arrive per second, at random moments (Poisson); None for as many
            as may be in flight at once.
    """

    prompts: Count
    input_tokens: Tokens
    output_tokens: Tokens
    max_concurrency: Concurrency
    seed: Seed
    request_rate: Rate | None = None


class Workload(Part):
    """The work that an engine gets.

    Attributes:
        seed: Of prelude and waves; contract trial k takes ``seed + k``.
        idle_dummy_batches: Dummy batches that the engine runs each time it has run out of
            requests, as a data-parallel rank does while others are at work.
        prelude: Comes and goes before each trial of each phase; its batch rows stay behind.
        waves: The requests of a contract trial, after the prelude.
        generation: The load under which everything is timed.
    """

    seed: Seed
    idle_dummy_batches: Annotated[int, Field(ge=0, le=4096)] = 0
    prelude: tuple[Wave, ...] = Field(default=(), strict=False)
    waves: tuple[Wave, ...] = Field(strict=False, min_length=1)
    generation: Generation

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, content: Any) -> Any:
        """Give each wave that asks again what the wave before it asks."""
        if not isinstance(content, Mapping):
            return content
        sections = {key: content[key] for key in ("prelude", "waves") if key in content}
        lists = {key: waves for key, waves in sections.items() if isinstance(waves, list)}
        refuse(
            *(one for key, waves in lists.items() for one in _contradictions_of_again(key, waves))
        )
        return {**content, **{key: _completed(waves) for key, waves in lists.items()}}

    @property
    def all_waves(self) -> Iterator[tuple[str, Wave]]:
        """Every wave, the prelude's first, each with its key."""
        for section, waves in (("prelude", self.prelude), ("waves", self.waves)):
            for at, wave in enumerate(waves):
                yield f"workload.{section}[{at}]", wave


def _asks_again(wave: object) -> bool:
    return isinstance(wave, Mapping) and wave.get("again") is True


def _contradictions_of_again(section: str, waves: list[Any]) -> Iterator[Contradiction]:
    for at, wave in enumerate(waves):
        if not _asks_again(wave):
            continue
        key = f"{section}[{at}]"
        if at == 0:
            yield f"{key}.again", "expected a wave before it, found none"
        for name in _ASKED:
            if name in wave:
                why = "a wave that asks again takes it from the one before"
                yield f"{key}.{name}", f"expected none, {why}, found {wave[name]}"


def _completed(waves: list[Any]) -> list[Any]:
    done: list[Any] = []
    for wave in waves:
        before = done[-1] if done else None
        if _asks_again(wave) and isinstance(before, Mapping):
            asked = {name: before[name] for name in _ASKED if name in before}
            done.append({**asked, **wave})
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
        yield f"{key}.continues", "expected a wave before it without temperature and aborts"
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
