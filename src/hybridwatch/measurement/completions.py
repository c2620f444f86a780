"""The JSON of a request and of its answer, and the comparison of two answers."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, count, pairwise
from typing import Any, Final, NamedTuple

from hybridwatch.records.run import (
    CLOSE,
    DIGITS,
    CloseCall,
    Completion,
    near_tie_within,
    position_of_parting,
)
from hybridwatch.scenarios.expansion import PlannedRequest, PlannedWave

ALTERNATIVES: Final = 5
"""Likeliest tokens that the engine names at each position, the chosen one among them."""
WANTED: Final[Mapping[str, Any]] = {"logprobs": ALTERNATIVES, "return_tokens_as_token_ids": True}
"""What a request says besides, to have logarithms. A token goes by its id: two ids may be one text.

Greedy tokens are the same with and without, and no request more is made."""
_ID: Final = "token_id:"
_REFUSED: Final = 400
_NO_NUMBERS: Final = "Out of range float values"
"""What vLLM's server says in place of an answer whose logarithms JSON cannot hold."""


class Reply(NamedTuple):
    """An answer with its text, as the server gave it, perhaps chunk by chunk."""

    completion: Completion
    text: str = ""
    streamed: bool = False


def build_body(request: PlannedRequest, model: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Write a request for ``/v1/completions``; ``wanted`` is added, such as ``WANTED``."""
    body: dict[str, Any] = {
        "model": request.adapter or model,
        "prompt": request.prompt,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature or 0,
        "ignore_eos": True,
        "return_token_ids": True,
        **wanted,
        **request.sampling_params.as_written(),
    }
    if request.sampling_seed is not None:
        body["seed"] = request.sampling_seed
    if request.n > 1:
        body["n"] = request.n
    if request.priority:
        body["priority"] = request.priority
    if request.streamed:
        body["stream"] = True
    return body


def join_stream(text: str) -> dict[str, Any]:
    """Make of server-sent events the answer that would have come whole, with a final ``error``."""
    lines = (line for line in text.split("\n") if line.startswith("data: "))
    events = (line.removeprefix("data: ").strip() for line in lines)
    answer: dict[str, Any] = {}
    parts: dict[int, list[Mapping[str, Any]]] = {}
    for chunk in (json.loads(one) for one in events if one != "[DONE]"):
        if "error" in chunk:
            answer["error"] = chunk["error"]
        for choice in chunk.get("choices", ()):
            parts.setdefault(choice["index"], []).append(choice)
    return {**answer, "choices": [joined(parts[index]) for index in sorted(parts)]}


def joined(choices: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Make one choice of several answers to a request, or chunks of one, one behind the other."""
    if len(choices) == 1:
        return choices[0]
    ordered = sorted(choices, key=lambda choice: int(choice["index"]))
    logprobs = [choice.get("logprobs") or {} for choice in ordered]
    return {
        "index": ordered[0]["index"],
        "text": "".join(choice.get("text") or "" for choice in ordered),
        "token_ids": [token for choice in ordered for token in choice.get("token_ids") or ()],
        "logprobs": {
            key: [value for part in logprobs for value in part.get(key) or ()]
            for key in ("token_logprobs", "top_logprobs")
        },
    }


def parse_completion(prompt: Sequence[int], choice: Mapping[str, Any]) -> Completion:
    """Read an answer, all its choices ``joined``, to the token ids of a prompt.

    Where not each token has a logarithm, none has. The prompt's tokens come first if their
    logarithms were requested, as the engine names them: it may name others.
    """
    of_prompt = [next(iter(one.items())) for one in (choice.get("prompt_logprobs") or ())[1:]]
    tokens = (*(int(token) for token, _ in of_prompt), *choice["token_ids"])
    logprobs = choice.get("logprobs") or {}
    chosen = [*(one["logprob"] for _, one in of_prompt), *(logprobs.get("token_logprobs") or ())]
    alternatives = [*({} for _ in of_prompt), *(logprobs.get("top_logprobs") or ())]
    if not len(tokens) == len(chosen) == len(alternatives):
        return Completion(prompt_digest(prompt), tokens)
    return Completion(
        prompt_digest(prompt),
        tokens,
        tuple(min(0.0, round(value, DIGITS)) for value in chosen),
        tuple(_close_calls(tokens, chosen, alternatives)),
    )


def is_without_numbers(status: int, text: str) -> bool:
    """Whether the logarithms of an answer are no numbers: a bug, no failure to measure it."""
    return status == _REFUSED and _NO_NUMBERS in text


def is_null_among(choice: Mapping[str, Any]) -> bool:
    """Whether a streamed answer has null for logarithms that are no numbers, and JSON."""
    return None in ((choice.get("logprobs") or {}).get("token_logprobs") or ())


def without_tokens(prompt: Sequence[int]) -> Completion:
    """What is kept where logarithms are no numbers, or the client went away before its answer."""
    return Completion(prompt_digest(prompt), ())


def prompt_digest(prompt: Sequence[int]) -> str:
    """Distinguish prompts in few characters."""
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()[:8]


def _close_calls(
    tokens: Sequence[int], chosen: Sequence[float], alternatives: Sequence[Mapping[str, float]]
) -> Iterator[CloseCall]:
    for position, (token, likely, others) in enumerate(
        zip(tokens, chosen, alternatives, strict=True)
    ):
        for name, value in others.items():
            other, gap = int(name.removeprefix(_ID)), max(0.0, round(likely - value, DIGITS))
            if other != token and gap < CLOSE:
                yield CloseCall(position, other, gap)


def with_streams(waves: Sequence[PlannedWave], number: int) -> tuple[PlannedWave, ...]:
    """Stream every second request of a trial; in the next ``number``, the others."""
    places = count(number)
    return tuple(
        replace(
            wave,
            requests=tuple(
                replace(one, streamed=next(places) % 2 == 0 and _can_stream(one))
                for one in wave.requests
            ),
        )
        for wave in waves
    )


def _can_stream(request: PlannedRequest) -> bool:
    """Whether a request may be answered chunk by chunk.

    When a client goes away is known by the answer that begins to arrive, and logarithms of the
    prompt come with an answer in one piece.
    """
    return request.abort_at_step is None and not request.echoed


def count_wrong_streams(replies: Sequence[Reply], whole: Sequence[Reply]) -> int | None:
    """Count the streamed answers with another text than the same tokens whole; ``None`` of none."""
    same = [
        (one.text, other.text)
        for one, other in zip(replies, whole, strict=True)
        if one.streamed
        and not other.streamed
        and one.completion.tokens
        and one.completion.tokens == other.completion.tokens
    ]
    return sum(text != other for text, other in same) if same else None


def unrepeated(
    waves: Sequence[PlannedWave], answered: Sequence[Completion], dtype: str
) -> int | None:
    """Count the requests of waves that ask again and get tokens that rounding cannot make.

    Chunks and neighbours may differ the second time. ``None`` comes when no wave asks again.
    """
    if not any(wave.again for wave in waves):
        return None
    bound = near_tie_within({dtype})
    return sum(is_another(one, other, bound) for one, other in _pairs(waves, answered))


def _pairs(
    waves: Sequence[PlannedWave], answered: Sequence[Completion]
) -> Iterator[tuple[Completion, Completion]]:
    begins = accumulate((len(wave.requests) for wave in waves), initial=0)
    placed = zip(waves, begins, strict=False)
    for (first, begin), (second, begin_again) in pairwise(placed):
        if not second.again:
            continue
        for at, requests in enumerate(zip(first.requests, second.requests, strict=True)):
            if all(request.abort_at_step is None for request in requests):
                yield answered[begin + at], answered[begin_again + at]


def is_another(one: Completion, other: Completion, bound: float) -> bool:
    """Whether two answers part by more than a near tie of ``bound`` nats in either."""
    at = position_of_parting(one, other)
    if at is None:
        return False
    if at >= min(len(one.tokens), len(other.tokens)):
        return True
    gaps = one.gap(at, other.tokens[at]), other.gap(at, one.tokens[at])
    return any(gap is None or gap > bound for gap in gaps)
