"""From the JSON of an answered request to what is kept of it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hybridwatch.record.completion import CLOSE, DIGITS, CloseCall, Completion

ALTERNATIVES: Final = 5
"""Likeliest tokens that the engine names at each position, the chosen one among them."""
WANTED: Final[Mapping[str, Any]] = {"logprobs": ALTERNATIVES, "return_tokens_as_token_ids": True}
"""What a request says besides, to have logarithms. A token goes by its id: two ids may be one text.

Greedy tokens are the same with and without, and no request more is made."""
_ID: Final = "token_id:"
_REFUSED: Final = 400
_NO_NUMBERS: Final = "Out of range float values"
"""What vLLM's server says in place of an answer whose logarithms JSON cannot hold."""


def completion_of(prompt: Sequence[int], choice: Mapping[str, Any]) -> Completion:
    """Read an answer.

    Args:
        prompt: Token ids that were sent.
        choice: The first of the answer's ``choices``.

    Returns:
        Without logarithms where the engine gave none, or not one for each token.
    """
    tokens = tuple(choice["token_ids"])
    told = choice.get("logprobs") or {}
    chosen, beside = told.get("token_logprobs") or (), told.get("top_logprobs") or ()
    if not len(tokens) == len(chosen) == len(beside):
        return Completion(prompt_digest(prompt), tokens)
    return Completion(
        prompt_digest(prompt),
        tokens,
        tuple(min(0.0, round(value, DIGITS)) for value in chosen),
        tuple(_close_calls(tokens, chosen, beside)),
    )


def is_without_numbers(status: int, text: str) -> bool:
    """Whether an engine computed an answer, and its logarithms are no numbers.

    A state that was read from the wrong place often gives NaN, so this is what a bug looks like and
    no failure to measure it.

    Args:
        status: Of the server's answer.
        text: Its body.
    """
    return status == _REFUSED and _NO_NUMBERS in text


def unreadable(prompt: Sequence[int]) -> Completion:
    """Give what is kept of an answer whose logarithms are no numbers: no token is known."""
    return Completion(prompt_digest(prompt), ())


def prompt_digest(prompt: Sequence[int]) -> str:
    """Tell prompts apart in few characters."""
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()[:8]


def _close_calls(
    tokens: Sequence[int], chosen: Sequence[float], beside: Sequence[Mapping[str, float]]
) -> Iterator[CloseCall]:
    for position, (token, likely, others) in enumerate(zip(tokens, chosen, beside, strict=True)):
        for name, value in others.items():
            other, gap = int(name.removeprefix(_ID)), max(0.0, round(likely - value, DIGITS))
            if other != token and gap < CLOSE:
                yield CloseCall(position, other, gap)
