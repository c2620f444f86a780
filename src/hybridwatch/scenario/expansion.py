"""Makes the requests of a workload: the same waves and seed give the same on every Python."""

import hashlib
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle
from typing import Final, Literal

from hybridwatch.scenario.pattern import Arrival, Wave
from hybridwatch.scenario.text import (
    QUESTION,
    SHORTEST_RECALL,
    Listing,
    listing,
    question,
    random_text,
)

Section = Literal["prelude", "waves"]

_REDRAWS: Final = 100
"""Draws of a prompt that its wave does not have yet; there are few texts of one token."""


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request, ready to be sent.

    Attributes:
        prompt: Token ids.
        max_tokens: Length of its answer.
        rank: Data-parallel rank that gets it; None when the engine shall choose.
        delay_s: Seconds from the start of the wave to its arrival; 0 but for poisson arrivals.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    rank: int | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedWave:
    """One wave, ready to be sent.

    Attributes:
        requests: In the order in which they arrive.
        arrival: How they arrive.
        max_concurrency: Requests in flight at once, for a queue.
        continues: Prompts begin with prompt and answer of the same place in the wave before.
    """

    requests: tuple[PlannedRequest, ...]
    arrival: Arrival = "together"
    max_concurrency: int | None = None
    continues: bool = False


def expand(waves: Sequence[Wave], seed: int, section: Section = "waves") -> tuple[PlannedWave, ...]:
    """Make the requests.

    A wave draws from its own stream, named by seed, section and place, so it stays as it is when
    another one is edited. Prompts of one wave differ as long as there are enough texts of their
    length; prompts of different waves differ by chance: two tokens are equal one time in 63.

    Args:
        waves: As declared; one that repeats becomes several.
        seed: The same seed makes the same requests.
        section: Where the waves are declared, so that prelude and waves get different texts. Shared
            prefixes are those of the whole workload.
    """
    planned = []
    earlier: Sequence[_Prompt] = ()
    for number, wave in enumerate(waves):
        for turn in range(wave.repeat):
            place = _Place(seed, f"{section}/{number}/{turn}", earlier if wave.continues else ())
            made, earlier = _planned(wave, place)
            planned.append(made)
    return tuple(planned)


class _Draws:
    """A stream of random numbers that depends on its name alone.

    ``random.Random.random`` with an integer seed is what Python promises never to change.
    """

    def __init__(self, name: str) -> None:
        seed = int.from_bytes(hashlib.sha256(name.encode("ascii")).digest(), "big")
        self.unit = random.Random(seed).random  # noqa: S311 - repeatable is what is wanted


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt, and the listing that questions of the next turn can be about."""

    tokens: tuple[int, ...]
    about: Listing


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a wave stands.

    Attributes:
        seed: Of the workload.
        name: Of the wave's own stream.
        before: What it continues.
    """

    seed: int
    name: str
    before: Sequence[_Prompt]


def _planned(wave: Wave, place: _Place) -> tuple[PlannedWave, Sequence[_Prompt]]:
    streams = [_Draws(f"{place.seed}/{place.name}/{request}") for request in range(wave.requests)]
    # A request draws in this order, whether the wave needs the number or not: input length, output
    # length, turn to end early, early length, gap, text. So its text depends on its length alone.
    inputs = [wave.input_tokens.at(stream.unit()) for stream in streams]
    outputs = _outputs(wave, streams)
    delays = _delays(wave, streams)
    prompts = _prompts(wave, place, streams, inputs)
    requests = (
        PlannedRequest(prompt.tokens, output, wave.rank, delay)
        for prompt, output, delay in zip(prompts, outputs, delays, strict=True)
    )
    planned = PlannedWave(tuple(requests), wave.arrival, wave.max_concurrency, wave.continues)
    return planned, prompts


def _outputs(wave: Wave, streams: Sequence[_Draws]) -> list[int]:
    whole = [wave.output_tokens.at(stream.unit()) for stream in streams]
    turns = [stream.unit() for stream in streams]
    early = [1 + int(stream.unit() * most) for stream, most in zip(streams, whole, strict=True)]
    count = math.floor(wave.early_finish * wave.requests + 0.5)
    chosen = set(sorted(range(wave.requests), key=turns.__getitem__)[:count])
    return [early[at] if at in chosen else whole[at] for at in range(wave.requests)]


def _delays(wave: Wave, streams: Sequence[_Draws]) -> list[float]:
    units = [stream.unit() for stream in streams]
    if wave.rate is None:
        return [0.0] * len(units)
    rate = wave.rate
    # Rounded, since the last digit of a logarithm is the C library's.
    return list(accumulate(round(-math.log(1 - unit) / rate, 6) for unit in units))


def _prompts(
    wave: Wave, place: _Place, streams: Sequence[_Draws], lengths: Sequence[int]
) -> list[_Prompt]:
    starts = _starts(wave, place)
    taken: set[tuple[int, ...]] = set()
    prompts = []
    for stream, start, length in zip(streams, starts, lengths, strict=False):
        prompt = _prompt(wave, stream, start, length)
        for _ in range(_REDRAWS):
            if prompt.tokens not in taken:
                break
            prompt = _prompt(wave, stream, start, length)
        taken.add(prompt.tokens)
        prompts.append(prompt)
    return prompts


def _starts(wave: Wave, place: _Place) -> Iterable[Listing]:
    """What each prompt begins with; of a turn, what is there already and can be asked for."""
    if place.before:
        return [Listing((), prompt.about.keys) for prompt in place.before]
    numbers = range(wave.first_prefix, wave.first_prefix + min(wave.prefixes, wave.requests))
    return cycle([_prefix(wave, _Draws(f"{place.seed}/prefix/{number}")) for number in numbers])


def _prefix(wave: Wave, draws: _Draws) -> Listing:
    if wave.text == "recall":
        return listing(draws.unit, wave.shared_prefix_tokens)
    return Listing(random_text(draws.unit, wave.shared_prefix_tokens))


def _prompt(wave: Wave, draws: _Draws, start: Listing, length: int) -> _Prompt:
    rest = length - len(start.tokens)
    if wave.text == "recall" and start.keys:
        return _Prompt(start.tokens + question(draws.unit, start, rest), start)
    if wave.text == "recall" and rest >= SHORTEST_RECALL:
        own = listing(draws.unit, rest - QUESTION)
        return _Prompt(start.tokens + own.tokens + question(draws.unit, own, QUESTION), own)
    return _Prompt(start.tokens + random_text(draws.unit, rest), start)
