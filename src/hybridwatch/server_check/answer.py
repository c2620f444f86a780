"""What a completions server answers, whole or as a stream, in one form."""

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

ID_PREFIX: Final = "token_id:"
_DONE: Final = "[DONE]"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them."""

    prompt: int
    completion: int
    total: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice of a reply.

    Attributes:
        text: ``None`` where it is not known, as of a part of another answer.
        tokens: Names of its tokens: ids where the server gives them, else texts.
        ids: Ids of its tokens; empty where the server keeps them to itself.
        logprobs: Of each token, in nats; empty where the server gives none.
        top: Likeliest tokens at each position with their logarithms.
        finish: ``finish_reason``.
        is_nan: Whether the server could not write its logarithms, as they are no numbers.
    """

    text: str | None
    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    top: tuple[Mapping[str, float], ...] = ()
    finish: str | None = None
    is_nan: bool = False

    def first(self, tokens: int) -> "Answer":
        """Give its first tokens."""
        return self._part(slice(tokens))

    def from_token(self, position: int) -> "Answer":
        """Give the rest of it from a position on."""
        return self._part(slice(position, None))

    def _part(self, part: slice) -> "Answer":
        return replace(
            self,
            text=None,
            tokens=self.tokens[part],
            ids=self.ids[part],
            logprobs=self.logprobs[part],
            top=self.top[part],
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to one request.

    Attributes:
        prompt_ids: Token ids of the prompt; empty where the server does not give them.
        seconds: From sending to the last byte.
        first_s: From sending to the first piece of a stream; ``None`` of a whole answer.
        is_whole: Whether a stream ended as it must, each choice with a reason; not all servers send
            ``[DONE]`` behind it.
    """

    answers: tuple[Answer, ...]
    usage: Usage | None
    prompt_ids: tuple[int, ...] = ()
    seconds: float = 0.0
    first_s: float | None = None
    is_whole: bool = True


def parse_reply(
    body: Mapping[str, Any],
    *,
    is_whole: bool = True,
    first_s: float | None = None,
    is_echoed: bool = False,
) -> Reply:
    """Read a reply; the first token of an echoed prompt has no logarithm, and gets 0.

    Raises:
        KeyError, TypeError, ValueError: It is none.
    """
    choices = sorted(body["choices"], key=lambda choice: int(choice.get("index", 0)))
    if not choices:
        raise ValueError("no choices")
    return Reply(
        tuple(_parse_answer(choice, is_echoed=is_echoed) for choice in choices),
        _parse_usage(body.get("usage")),
        tuple(choices[0].get("prompt_token_ids") or ()),
        first_s=first_s,
        is_whole=is_whole,
    )


def _parse_answer(choice: Mapping[str, Any], *, is_echoed: bool) -> Answer:
    found = choice.get("logprobs") or {}
    ids = tuple(int(one) for one in choice.get("token_ids") or ())
    names = tuple(found.get("tokens") or ())
    if not ids and names and all(name.startswith(ID_PREFIX) for name in names):
        ids = tuple(int(name.removeprefix(ID_PREFIX)) for name in names)
    chosen = tuple(found.get("token_logprobs") or ())
    if is_echoed and chosen[:1] == (None,):
        chosen = (0.0, *chosen[1:])
    is_nan = None in chosen
    return Answer(
        text=str(choice["text"]),
        tokens=names or tuple(map(str, ids)),
        ids=ids,
        logprobs=() if is_nan else chosen,
        top=() if is_nan else tuple(one or {} for one in found.get("top_logprobs") or ()),
        finish=choice.get("finish_reason"),
        is_nan=is_nan,
    )


def _parse_usage(found: Mapping[str, Any] | None) -> Usage | None:
    if not found:
        return None
    prompt, completion = int(found["prompt_tokens"]), int(found.get("completion_tokens") or 0)
    return Usage(prompt, completion, int(found["total_tokens"]))


@dataclass(slots=True)
class _Joined:
    """One choice, as far as its chunks have come."""

    choice: dict[str, Any] = field(default_factory=dict)

    def add(self, chunk: Mapping[str, Any]) -> None:
        choice = self.choice
        choice["index"] = chunk.get("index", 0)
        choice["text"] = choice.get("text", "") + (chunk.get("text") or "")
        choice["finish_reason"] = chunk.get("finish_reason") or choice.get("finish_reason")
        for key in ("token_ids", "prompt_token_ids"):
            choice[key] = [*(choice.get(key) or ()), *(chunk.get(key) or ())]
        logprobs = choice.setdefault("logprobs", {})
        for key, values in (chunk.get("logprobs") or {}).items():
            if isinstance(values, list):
                logprobs[key] = [*logprobs.get(key, ()), *values]


async def read_stream(lines: AsyncIterator[str], begun: float) -> Reply:
    """Join the chunks of a stream; ``begun`` is when it was requested, by ``time.monotonic``.

    Raises:
        KeyError, TypeError, ValueError: They are none of a completion.
        StreamedError: The server reported an error in the middle.
    """
    parts: dict[int, _Joined] = {}
    usage, is_stream, first_s = None, False, None
    async for line in lines:
        if not line.startswith("data:"):
            continue
        is_stream = True
        event = line.removeprefix("data:").strip()
        if event == _DONE:
            continue
        chunk = json.loads(event)
        if "error" in chunk:
            raise StreamedError(str(chunk["error"]))
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices", ()):
            first_s = first_s or time.monotonic() - begun
            parts.setdefault(int(choice.get("index", 0)), _Joined()).add(choice)
    choices = [part.choice for part in parts.values()]
    if is_stream and not choices:
        return Reply((Answer(""),), None, is_whole=False)
    body = {"choices": choices, "usage": usage}
    return parse_reply(body, is_whole=_ended(choices), first_s=first_s)


def _ended(choices: Sequence[Mapping[str, Any]]) -> bool:
    return all(choice["finish_reason"] for choice in choices)


class StreamedError(Exception):
    """An error of the server in the middle of a stream."""
