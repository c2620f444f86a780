"""A completions server that plays a language model, and faults that can be planted in it.

A token's successor is a pure function of all tokens before it, so a right server always gives the
same answer. Tokens are bytes of a small alphabet: a text is its tokens.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.unit.api.serving import serving
from tests.unit.server_check.played_parameters import (
    OF_OTHERS,
    PARAMETERS,
    STOP_OF_ANOTHER,
    UNLIKELY,
    as_wanted,
    chosen,
    heeded,
    is_end,
)

ALPHABET = "abcdefghijklmnopqrstuvwxyz .?\n0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ROOM = 1024
Ranked = tuple[int, list[tuple[int, float]]]
"""A token, and the likeliest ones in its place."""
_TURNS = 12
"""Turns of the event loop that a token takes, in which other requests come."""
_LATE = 60
_SHORT = 8
_LONG = 300
"""Tokens beyond which a prompt is long."""
_BLOCK = 16
_WAITS = {"stream does not end": 10**6, "after a client left": 15}
"""Hundredths of a second before the end of a stream of 24 tokens: a client is to leave earlier."""
_STORM = 15
"""Requests of four tokens in a row, as only a storm has them."""


def likely(tokens: list[int]) -> list[tuple[int, float]]:
    """The five likeliest successors with their logarithms, the likeliest first."""
    drawn = hashlib.sha256(bytes(tokens)).digest()
    chosen = [(byte + at * 7) % len(ALPHABET) for at, byte in enumerate(drawn[:5])]
    while len(set(chosen)) < 5:
        chosen = [(one + at) % len(ALPHABET) for at, one in enumerate(chosen)]
    first = -0.1 - drawn[5] / 1000
    return [(token, first - at * (1 + drawn[6] / 257)) for at, token in enumerate(chosen)]


@dataclass
class LanguageServer:
    """The server's state.

    Attributes:
        fault: What is planted; empty for a right server.
        refuses: Parameters that it answers with 400.
        has_ties: Whether two tokens are nearly as likely now and then.
        knows_lists: Whether it answers questions about a list in a prompt.
        adapters: Names of adapters of its model.
        is_plain: Whether it ignores ``n`` and other parameters, and sends no ``[DONE]``, as
            transformers' server.
    """

    fault: str = ""
    refuses: frozenset[str] = frozenset()
    key: str = ""
    adapters: tuple[str, ...] = ()
    is_plain: bool = False
    has_ties: bool = False
    knows_lists: bool = False
    has_ids: bool = True
    in_flight: int = 0
    requests: int = 0
    readings: int = 0
    prompts: list[list[int]] = field(default_factory=list)
    storm: int = 0
    storm_over: bool = False
    has_left: bool = False
    harmed: bool = False
    seen: set[tuple[str, str]] = field(default_factory=set)
    stored: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    playing: list[dict[str, Any]] = field(default_factory=list)
    hit: tuple[str, str] = ("", "")
    counted: list[int] = field(default_factory=list)
    made: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self.models),
                Route("/v1/completions", self.complete, methods=["POST"]),
                Route("/metrics", self.metrics),
                Route("/version", self.version),
            ]
        )

    async def models(self, _: Request) -> Response:
        adapters = [{"id": name, "parent": "played"} for name in self.adapters]
        return JSONResponse({"data": [{"id": "played", "max_model_len": ROOM}, *adapters]})

    async def metrics(self, _: Request) -> Response:
        self.readings += 1
        lost = 0.25 if self.fault == "cache is lost" and self.readings > 1 else 0.0
        return PlainTextResponse(f'vllm:kv_cache_usage_perc{{engine="0"}} {lost}\n')

    async def version(self, _: Request) -> Response:
        return JSONResponse({"version": "0.31.0"})

    async def complete(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.bodies.append(body)
        failure = self.failure(request, body)
        return failure or await self.answer(body)

    def failure(self, request: Request, body: dict[str, Any]) -> Response | None:
        refused = self.refuses & set(body)
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return JSONResponse({"error": {"message": "no key"}}, 401)
        if refused:
            return JSONResponse({"error": {"message": f"{refused} are unknown"}}, 400)
        if body.get("n", 1) > 1 and not self.is_plain and self.fault != "n differs":
            return JSONResponse({"error": {"message": "n must be 1 when greedy"}}, 400)
        self.requests += 1
        if self.fault == "429" and self.requests % 3 == 0:
            return JSONResponse({"error": {"message": "busy"}}, 429, {"retry-after": "0"})
        if self.fault == "500" and self.requests > 20 and self.requests % 3 == 0:
            return JSONResponse({"error": {"message": "broken"}}, 500)
        if self.fault == "no json" and self.requests > 20 and self.requests % 3 == 0:
            return PlainTextResponse("<html>")
        return None

    async def answer(self, body: dict[str, Any]) -> Response:
        prompts = body["prompt"]
        several = isinstance(prompts, list) and not isinstance(prompts[0], int)
        given = [self.encode(one) for one in (prompts if several else [prompts])]
        self.in_flight += 1
        self.storm_over = self.storm > _STORM and body["max_tokens"] != 4
        self.storm = self.storm + 1 if body["max_tokens"] == 4 else 0
        if body.get("stream"):
            return StreamingResponse(self.stream(body, given[0]), media_type="text/event-stream")
        try:
            choices = [await self.choice(body, one) for one in given]
            if self.knows_lists and isinstance(prompts, str) and prompts.endswith("="):
                wanted = prompts.rpartition("?")[2]
                choices[0]["text"] = prompts.partition(wanted)[2].partition("\n")[0]
        finally:
            self.in_flight -= 1
        if self.fault == "list is swapped":
            choices.reverse()
        for number, choice in enumerate(choices):
            choice["index"] = number
        tokens = sum(map(len, given)), sum(len(one["token_ids"]) for one in choices)
        return JSONResponse({"choices": choices, "usage": self.usage(*tokens)})

    def encode(self, prompt: str | list[int]) -> list[int]:
        if isinstance(prompt, list):
            return prompt
        return [ALPHABET.index(one) if one in ALPHABET else 0 for one in prompt]

    def usage(self, prompt: int, completion: int) -> dict[str, int]:
        completion += self.fault == "usage is wrong"
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    async def stream(self, body: dict[str, Any], prompt: list[int]) -> AsyncIterator[str]:
        ended = False
        try:
            choice = await self.choice(body, prompt)
            for event in self.events(choice, len(prompt)):
                if self.fault == "slow":
                    await asyncio.sleep(0.005)
                waits = body["max_tokens"] // 24 * _WAITS.get(self.fault, 0)
                for _ in range(waits if event == "[DONE]" else 0):
                    yield ": more\n\n"
                    await asyncio.sleep(0.01)
                ended = event == "[DONE]"
                yield f"data: {event}\n\n"
                await asyncio.sleep(0)
        finally:
            self.in_flight -= 1
            self.has_left = self.has_left or not ended

    def events(self, choice: dict[str, Any], prompt: int) -> Iterator[str]:
        tokens = choice["token_ids"]
        text = choice["text"]
        for at, token in enumerate(tokens):
            if self.fault == "stream is cut" and at == len(tokens) - 1:
                return
            last = at == len(tokens) - 1
            part = {
                "index": 0,
                "text": text[at:] if last else text[at : at + 1],
                "token_ids": [token],
                "logprobs": choice["logprobs"]
                and {key: [values[at]] for key, values in choice["logprobs"].items()},
                "finish_reason": choice["finish_reason"] if last else None,
            }
            if self.fault == "stream drops text" and at == 2:
                part["text"] = ""
            yield json.dumps({"choices": [part]})
        yield json.dumps({"choices": [], "usage": self.usage(prompt, len(tokens))})
        if not self.is_plain:
            yield "[DONE]"

    async def choice(self, body: dict[str, Any], prompt: list[int]) -> dict[str, Any]:
        wrong = self.is_wrong_before(body, prompt)
        self.prompts.append(prompt)
        self.playing.append(body)
        try:
            return await self.computed(body, prompt, wrong=wrong)
        finally:
            self.prompts.remove(prompt)
            self.playing.remove(body)

    async def computed(
        self, body: dict[str, Any], prompt: list[int], *, wrong: bool
    ) -> dict[str, Any]:
        wrong = await self.is_wrong_in_company(body, prompt) or wrong
        others = [one for one in self.prompts if one != prompt]
        is_swapped = self.fault == "answers are swapped" and bool(others)
        tokens = list(others[0] if is_swapped else prompt)
        hidden = self.hidden(body, prompt)
        in_flight = [one for one in self.playing if one is not body]
        heeds = {} if self.is_plain else heeded(body, in_flight, self.before, self.fault)
        self.before = body
        begin, found = len(tokens), []
        stops = body.get("stop") or []
        text, finish = "", "length"
        for _ in range(body["max_tokens"]):
            top = self.rank(hidden + tokens)
            token = chosen(heeds, top, [*self.counted, *tokens[begin:]])
            found.append((token, top))
            tokens.append(token)
            text += ALPHABET[token]
            if any(stop in text for stop in stops) or is_end(heeds, tokens):
                finish = "stop"
                break
        if any(stop in text for stop in stops) and self.fault != "stop stays":
            text = text[: min(text.index(stop) for stop in stops if stop in text)]
        text, finish = as_wanted(heeds, text, finish)
        said = tokens[begin:]
        if self.fault == "counts stay" and "presence_penalty" in heeds:
            self.counted = said
        salt = str(body.get("cache_salt"))
        ends = range(begin - begin % _BLOCK + _BLOCK, len(tokens), _BLOCK)
        self.stored |= {(salt, tuple(tokens[:end])) for end in ends}
        if wrong:
            said = [(said[0] + 1) % len(ALPHABET), *said[1:]]
            text = ALPHABET[said[0]] + text[1:] if text else text
        if heeds.get("echo"):
            found = [*self.ranked(hidden, prompt), *found]
            return self.written(body, prompt, [*prompt, *said], found, text, finish)
        return self.written(body, prompt, said, found, text, finish)

    async def is_wrong_in_company(self, body: dict[str, Any], prompt: list[int]) -> bool:
        """Wait for other requests, and say whether they make this answer wrong."""
        in_company = self.fault == "company"
        turns, pause_s = _TURNS, 0.0
        # Others are on their way: half a second at most, which only these faults take.
        if self.fault == "long beside others" and len(prompt) > _LONG:
            in_company, turns, pause_s = True, 100, 0.005
        if self.fault == "short beside others" and len(prompt) <= _SHORT:
            in_company, turns, pause_s = True, 40, 0.005
        if self.fault in OF_OTHERS and (set(body) & PARAMETERS or self.fault == STOP_OF_ANOTHER):
            turns, pause_s = 40, 0.005
        crowd = self.in_flight
        for _ in range(turns):
            await asyncio.sleep(pause_s)
            crowd = max(crowd, self.in_flight)
            if crowd > 1:
                break
        return in_company and crowd > 1

    def hidden(self, body: dict[str, Any], prompt: list[int]) -> list[int]:
        """What the next token depends on besides the tokens before it."""
        if self.fault == "sees where its prompt ends":
            return [len(prompt) % 64]
        model = str(body["model"])
        if self.fault == "adapter from the cache":
            model = self.made.setdefault((str(body.get("cache_salt")), tuple(prompt)), model)
        return [1 + self.adapters.index(model)] if model in self.adapters else []

    def ranked(self, hidden: list[int], prompt: list[int]) -> Iterator[Ranked]:
        """The likeliest tokens at each place of a prompt."""
        late = self.fault == "prompt logarithms are late"
        for at, token in enumerate(prompt):
            yield token, self.rank(hidden + prompt[: max(0, at - late)])

    def rank(self, tokens: list[int]) -> list[tuple[int, float]]:
        first, second, *rest = likely(tokens)
        if not self.has_ties or sum(tokens) % 8:
            return [first, second, *rest]
        if self.fault == "rounds otherwise":
            first, second = (second[0], first[1]), first
        return [first, (second[0], first[1] - 1e-5), *rest]

    def is_wrong_before(self, body: dict[str, Any], prompt: list[int]) -> bool:
        """Whether what came before, or the prompt itself, makes this answer wrong."""
        was = (str(body.get("cache_salt")), str(prompt))
        seen = was in self.seen
        hit_before = self.hit if seen else was
        self.hit = was if seen else self.hit
        self.seen.add(was)
        # Once, and not to another client that leaves: when a server notices one is chance.
        is_harmed = self.has_left and not self.harmed and not body.get("stream")
        self.harmed = self.harmed or is_harmed
        goes_on = any(
            (was[0], tuple(prompt[:end])) in self.stored for end in range(0, len(prompt), _BLOCK)
        )
        return {
            "cached": seen,
            "hit of another": hit_before not in {was, ("", "")},
            "what answers store": goes_on,
            "one token": len(prompt) % 4 == 0,
            "long from the cache": len(prompt) > _LONG and seen,
            "after a storm": self.storm_over,
            "after a client left": is_harmed,
            "later": self.requests > _LATE,
        }.get(self.fault, False)

    def written(
        self,
        body: dict[str, Any],
        prompt: list[int],
        said: list[int],
        found: list[Ranked],
        text: str,
        finish: str,
    ) -> dict[str, Any]:
        lie = 0.5 if self.fault == "logarithms lie" else 0.0
        names = [f"token_id:{one}" if self.has_ids else ALPHABET[one] for one in said]
        choice: dict[str, Any] = {
            "text": text,
            "finish_reason": finish,
            "token_ids": said,
            "logprobs": {
                "tokens": names,
                "token_logprobs": [dict(top).get(token, UNLIKELY) - lie for token, top in found],
                "top_logprobs": [
                    {
                        (f"token_id:{token}" if self.has_ids else ALPHABET[token]): value
                        for token, value in top
                    }
                    for _, top in found
                ],
            }
            if body.get("logprobs")
            else None,
        }
        if len(said) > body["max_tokens"]:  # the prompt is there, too
            choice["token_ids"] = said[len(prompt) :]
            choice["logprobs"]["token_logprobs"][0] = None
        if body.get("return_token_ids") and self.has_ids:
            choice["prompt_token_ids"] = prompt
        return choice


@contextmanager
def served(server: LanguageServer) -> Iterator[str]:
    """Serve it and give its address."""
    with serving(server.app()) as client:
        yield str(client.base_url).rstrip("/")
