"""Makes the requests of a workload: the same waves and seed give the same on every Python.

Prompts are letters without sense, or something that a model must remember. A model that was
trained to recall notices a damaged state at once, where one that babbles on after random letters
may not. Token ids are printable bytes, which every vocabulary has among its small ids and which are
the tokens of the embedded models.
"""

import hashlib
import math
import random
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, cycle
from typing import Final, Literal, TypeVar

from hybridwatch.scenarios.pattern import Arrival, Wave
from hybridwatch.scenarios.sampling import DEFAULT_PARAMS, SamplingParams

Unit = Callable[[], float]
"""A stream of numbers from 0 to below 1."""

TokenIds = tuple[int, ...]

_T = TypeVar("_T")

_SYMBOLS: Final = (string.ascii_letters + string.digits + " ").encode("ascii")
_LETTERS: Final = string.ascii_lowercase
_WORDS: Final = ("the", "old", "mill", "is", "quiet", "rain", "falls", "on", "stone", "steps")
_PAIRS: Final = 4
_VALUE: Final = 4
QUESTION: Final = len("?K4=")
"""Tokens of a question alone."""

SHORTEST_RECALL: Final = 2 * len("K4=abcd\n") + QUESTION
"""Prompts that are shorter than two pairs and a question are random letters."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The beginning of a prompt, and the questions about it; none for random letters."""

    tokens: TokenIds = ()
    keys: tuple[str, ...] = ()


def random_text(unit: Unit, tokens: int) -> TokenIds:
    """Letters, digits and blanks."""
    return tuple(_pick(unit, _SYMBOLS) for _ in range(tokens))


def listing(unit: Unit, tokens: int) -> Listing:
    """Lines such as ``K4=abcd``, then words, so many tokens in all."""
    lines, keys = "", list[str]()
    while len(keys) < _PAIRS and len(lines) + len("K4=abcd\n") <= tokens:
        key = _pick(unit, string.ascii_uppercase) + _pick(unit, string.digits)
        if key not in keys:
            keys.append(key)
            lines += f"{key}={''.join(_pick(unit, _LETTERS) for _ in range(_VALUE))}\n"
    return Listing(_encode(lines + _words(unit, tokens - len(lines))), tuple(keys))


def question(unit: Unit, about: Listing, tokens: int) -> TokenIds:
    """Words, and at the end the question for one of a listing's values."""
    if not about.keys or tokens < QUESTION:
        return random_text(unit, tokens)
    query = f"?{_pick(unit, about.keys)}="
    return _encode(_words(unit, tokens - len(query)) + query)


def _words(unit: Unit, length: int) -> str:
    """Words on one line, cut to the length; ends its line."""
    text = ""
    while len(text) < length:
        text += f"{_pick(unit, _WORDS)} "
    return text[: length - 1] + "\n" if length else ""


def _pick(unit: Unit, of: Sequence[_T]) -> _T:
    return of[int(unit() * len(of))]


def _encode(text: str) -> TokenIds:
    return tuple(text.encode("ascii"))


Section = Literal["prelude", "waves"]

_REDRAWS: Final = 100
"""Draws of a prompt that its wave does not have yet; there are few texts of one token."""


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request, ready to be sent.

    Attributes:
        rank: Data-parallel rank that gets it; None when the engine shall choose.
        delay_s: Seconds from the start of the wave to its arrival, of poisson arrivals and traces.
        after: Number of the request of its wave whose answer ``delay_s`` counts from, if any.
        at_step: Engine step of the wave before which it comes, when the wave arrives by steps.
        adapter: One of ``engine.lora_modules``; empty for the model alone.
        abort_at_step: The one before which its client goes away; None for one that is answered.
        streamed: Whether its answer comes chunk by chunk.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    rank: int | None = None
    delay_s: float = 0.0
    at_step: int = 0
    abort_at_step: int | None = None
    temperature: float = 0.0
    sampling_seed: int | None = None
    n: int = 1
    priority: int = 0
    sampling_params: SamplingParams = DEFAULT_PARAMS
    adapter: str = ""
    streamed: bool = False
    after: int | None = None

    @property
    def has_right_answer(self) -> bool:
        """Whether an oracle can say what the answer is: it is greedy, and a client waits."""
        is_greedy = not self.temperature or self.sampling_params.leaves_one_token
        return is_greedy and self.n == 1 and self.abort_at_step is None

    @property
    def echoed(self) -> int:
        """Tokens of the prompt that come, with their logarithms, before those of the answer."""
        return 0 if self.sampling_params.prompt_logprobs is None else len(self.prompt) - 1

    def can_have(self, tokens: int) -> bool:
        """Whether an answer can be so long: shorter than requested only where something ends it."""
        least = 1 if self.sampling_params.can_end_early else self.max_tokens
        return least <= tokens <= self.max_tokens


@dataclass(frozen=True, slots=True)
class PlannedWave:
    """One wave, ready to be sent, its requests in the order in which they arrive; as ``Wave``."""

    requests: tuple[PlannedRequest, ...]
    arrival: Arrival = "together"
    max_concurrency: int | None = None
    continues: bool = False
    again: bool = False
    token_budget: int | None = None
    idle_s: float = 0.0


def list_due_s(requests: Sequence[PlannedRequest]) -> list[float]:
    """Seconds from the start of a wave at which each request comes, if answers take no time."""
    due = list[float]()
    for one in requests:
        due.append(one.delay_s + (0.0 if one.after is None else due[one.after]))
    return due


def expand(waves: Sequence[Wave], seed: int, section: Section = "waves") -> tuple[PlannedWave, ...]:
    """Make the requests.

    A wave draws from its own stream, named by seed, section and place, so it stays as it is when
    another one is edited. Prompts of one wave differ as long as there are enough texts of their
    length; prompts of different waves differ by chance: two tokens are equal one time in 63. A wave
    that repeats becomes several. Prelude and waves (``section``) get different texts, but the
    shared prefixes are those of the whole workload.
    """
    planned: list[PlannedWave] = []
    earlier: Sequence[_Prompt] = ()
    begin = 0  # step of the last planned wave at which the wave before began
    for number, wave in enumerate(waves):
        for turn in range(wave.repeat):
            place = _Place(seed, f"{section}/{number}/{turn}", earlier if wave.continues else ())
            made, prompts = _planned(wave, place)
            if wave.again:
                made = _repeat_requests(planned[-1], made)
            else:
                earlier = prompts
            if wave.overlap_after_steps is None:
                begin = 0
                planned.append(made)
            else:
                begin += wave.overlap_after_steps
                planned[-1] = _overlaid(planned[-1], made, begin)
    return tuple(planned)


def _repeat_requests(before: PlannedWave, made: PlannedWave) -> PlannedWave:
    pairs = zip(before.requests, made.requests, strict=True)
    requests = (replace(new, prompt=old.prompt, max_tokens=old.max_tokens) for old, new in pairs)
    return replace(made, requests=tuple(requests))


def _overlaid(below: PlannedWave, above: PlannedWave, begin: int) -> PlannedWave:
    later = (
        replace(
            request,
            at_step=begin + request.at_step,
            abort_at_step=None if request.abort_at_step is None else begin + request.abort_at_step,
        )
        for request in above.requests
    )
    return replace(below, requests=(*below.requests, *later), arrival="steps")


def _draws(name: str) -> Unit:
    """A stream that depends on its name alone, as Python promises of an integer seed."""
    seed = int.from_bytes(hashlib.sha256(name.encode("ascii")).digest(), "big")
    return random.Random(seed).random  # noqa: S311 - repeatable is what is wanted


@dataclass(frozen=True, slots=True)
class _Prompt:
    tokens: tuple[int, ...]
    about: Listing


@dataclass(frozen=True, slots=True)
class _Place:
    seed: int
    name: str
    before: Sequence[_Prompt]


def _planned(wave: Wave, place: _Place) -> tuple[PlannedWave, Sequence[_Prompt]]:
    streams = [_draws(f"{place.seed}/{place.name}/{request}") for request in range(wave.requests)]
    # A request draws in this order, whether the wave needs the number or not: input length, output
    # length, turn to end early, early length, gap, text. So its text depends on its length alone.
    inputs = [wave.input_tokens.of(at, unit()) for at, unit in enumerate(streams)]
    outputs = _outputs(wave, streams)
    delays = _delays(wave, streams)
    prompts = _prompts(wave, place, streams, inputs)
    aborts = {abort.request: abort.step for abort in wave.aborts}
    requests = (
        PlannedRequest(
            *(prompt.tokens, output, wave.rank, delay),
            at_step=wave.at_step[at] if wave.at_step else 0,
            abort_at_step=aborts.get(at),
            temperature=wave.temperature,
            sampling_seed=None if wave.sampling_seed is None else wave.sampling_seed + at,
            n=wave.n,
            priority=wave.find_priority(at),
            sampling_params=wave.find_params(at),
            adapter=wave.find_adapter(at),
            after=wave.trace[at].after if wave.trace else None,
        )
        for at, (prompt, output, delay) in enumerate(zip(prompts, outputs, delays, strict=True))
    )
    planned = PlannedWave(
        *(tuple(requests), "steps" if wave.counts_steps else wave.arrival, wave.max_concurrency),
        continues=wave.continues,
        again=wave.again,
        token_budget=wave.token_budget,
        idle_s=wave.idle_s,
    )
    return planned, prompts


def _outputs(wave: Wave, streams: Sequence[Unit]) -> list[int]:
    whole = [wave.output_tokens.of(at, unit()) for at, unit in enumerate(streams)]
    turns = [unit() for unit in streams]
    early = [1 + int(unit() * most) for unit, most in zip(streams, whole, strict=True)]
    count = math.floor(wave.early_finish * wave.requests + 0.5)
    chosen = set(sorted(range(wave.requests), key=turns.__getitem__)[:count])
    return [early[at] if at in chosen else whole[at] for at in range(wave.requests)]


def _delays(wave: Wave, streams: Sequence[Unit]) -> list[float]:
    units = [unit() for unit in streams]
    if wave.trace:
        return [one.delay_s for one in wave.trace]
    if wave.rate is None:
        return [0.0] * len(units)
    rate = wave.rate
    # Rounded, since the last digit of a logarithm is the C library's.
    return list(accumulate(round(-math.log(1 - unit) / rate, 6) for unit in units))


def _prompts(
    wave: Wave, place: _Place, streams: Sequence[Unit], lengths: Sequence[int]
) -> list[_Prompt]:
    if wave.trace:
        return _traced_prompts(wave, place.seed, streams)
    taken: set[tuple[int, ...]] = set()
    prompts = []
    starts = zip(streams, _starts(wave, place), lengths, strict=False)
    for at, (unit, whole, length) in enumerate(starts):
        start = _cut(whole, wave.find_prefix(at))
        prompt = _prompt(wave, unit, start, length)
        for _ in range(_REDRAWS):
            if prompt.tokens not in taken:
                break
            prompt = _prompt(wave, unit, start, length)
        taken.add(prompt.tokens)
        prompts.append(prompt)
    return prompts


def _traced_prompts(wave: Wave, seed: int, streams: Sequence[Unit]) -> list[_Prompt]:
    """Prompts that begin with the texts of a trace; equal ids give equal texts, in every wave."""
    prompts = []
    for one, unit in zip(wave.trace, streams, strict=True):
        texts = (random_text(_draws(f"{seed}/trace/{name}"), size) for name, size in one.texts)
        shared = tuple(chain.from_iterable(texts))
        own = random_text(unit, one.input_tokens - len(shared))
        prompts.append(_Prompt(shared + own, Listing()))
    return prompts


def _starts(wave: Wave, place: _Place) -> Iterable[Listing]:
    """What each prompt begins with; in a later turn, the text so far, which can be queried."""
    if place.before:
        return [Listing((), prompt.about.keys) for prompt in place.before]
    numbers = range(wave.first_prefix, wave.first_prefix + min(wave.prefixes, wave.requests))
    return cycle([_prefix(wave, _draws(f"{place.seed}/prefix/{number}")) for number in numbers])


def _prefix(wave: Wave, unit: Unit) -> Listing:
    if wave.text == "recall":
        return listing(unit, wave.longest_prefix)
    return Listing(random_text(unit, wave.longest_prefix))


def _cut(start: Listing, tokens: int) -> Listing:
    """As much of a start as a request shares; a listing is shared whole."""
    return start if len(start.tokens) <= tokens else Listing(start.tokens[:tokens])


def _prompt(wave: Wave, unit: Unit, start: Listing, length: int) -> _Prompt:
    rest = length - len(start.tokens)
    if wave.text == "recall" and start.keys:
        return _Prompt(start.tokens + question(unit, start, rest), start)
    if wave.text == "recall" and rest >= SHORTEST_RECALL:
        own = listing(unit, rest - QUESTION)
        return _Prompt(start.tokens + own.tokens + question(unit, own, QUESTION), own)
    return _Prompt(start.tokens + random_text(unit, rest), start)
