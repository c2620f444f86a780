"""The proxy of a disaggregated pair, between two small stand-ins for the engines."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from hybridwatch.engines.pair_proxy import FAILED_SIDE, PairProxy, refusal
from tests.waiting import LIMIT_S

HANDLE = {"do_remote_prefill": True, "remote_block_ids": [[3], [7]], "remote_port": 5}
ASKED = {
    "model": "m",
    "prompt": "Sam has",
    "max_tokens": 9,
    "min_tokens": 2,
    "stream": True,
    "stream_options": {"include_usage": True},
}
NOWHERE = "http://127.0.0.1:9"
"""The discard port: nobody listens."""


@dataclass
class Engine:
    """Stands in for an engine: keeps what it is asked, answers as told."""

    answer: Callable[[web.Request], Awaitable[web.StreamResponse]]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    well: bool = True

    def application(self) -> web.Application:
        async def complete(request):
            self.bodies.append(await request.json())
            return await self.answer(request)

        async def health(_request):
            return web.Response(status=200 if self.well else 500)

        async def models(_request):
            return web.json_response({"data": [{"id": "m"}]})

        application = web.Application()
        application.router.add_post("/v1/completions", complete)
        application.router.add_get("/health", health)
        application.router.add_get("/v1/models", models)
        return application


def says(content: object, status: int = 200) -> Engine:
    async def answer(_request):
        return web.json_response(content, status=status)

    return Engine(answer)


def prefiller() -> Engine:
    return says({"choices": [{"text": "?"}], "kv_transfer_params": HANDLE})


def decoder() -> Engine:
    return says({"choices": [{"text": " 12"}]})


def streams(
    *pieces: bytes, then: Callable[[web.Request], Awaitable[object]] | None = None
) -> Engine:
    """Answers in pieces; ``then`` runs after the first."""

    async def answer(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for number, piece in enumerate(pieces):
            await response.write(piece)
            if number == 0 and then is not None:
                await then(request)
        return response

    return Engine(answer)


@dataclass
class Pair:
    """A proxy with its engines, and somebody who asks it."""

    proxy: PairProxy
    asker: TestClient[web.Request, web.Application]

    async def ask(self, body: object = ASKED) -> tuple[int, str | None, bytes]:
        async with self.asker.post("/v1/completions", json=body) as answer:
            return answer.status, answer.headers.get(FAILED_SIDE), await answer.read()


@asynccontextmanager
async def pair_of(prefill: Engine | None, decode: Engine | None):
    """The proxy between the engines; none stands for one that is not there."""
    servers = [TestServer(one.application()) for one in (prefill, decode) if one is not None]
    for server in servers:
        await server.start_server()
    addresses = iter([str(server.make_url("")).rstrip("/") for server in servers])
    urls = [NOWHERE if one is None else next(addresses) for one in (prefill, decode)]
    proxy = PairProxy(*urls)
    try:
        # Test servers cancel a handler whose asker has gone, as the proxy's own does.
        async with TestClient(TestServer(proxy.application())) as asker:
            yield Pair(proxy, asker)
    finally:
        for server in servers:
            await server.close()


def ask_once(prefill: Engine | None, decode: Engine | None, body: object = ASKED):
    """One request through a fresh pair: status, failed side, body, and the proxy's tally."""

    async def run():
        async with pair_of(prefill, decode) as pair:
            return *await pair.ask(body), pair.proxy.tally

    return asyncio.run(run())


def test_request_is_prefilled_for_one_token_then_decoded_as_asked():
    prefill, decode = prefiller(), decoder()
    status, side, body, tally = ask_once(prefill, decode)
    assert (status, side, json.loads(body)) == (200, None, {"choices": [{"text": " 12"}]})
    (asked,) = prefill.bodies
    handle = asked.pop("kv_transfer_params")
    assert asked == {"model": "m", "prompt": "Sam has", "max_tokens": 1, "stream": False}
    assert handle["do_remote_decode"]
    assert not handle["do_remote_prefill"]
    assert decode.bodies == [{**ASKED, "kv_transfer_params": HANDLE}]
    assert (tally.requests, tally.prefilled, tally.decoded) == (1, 1, 1)


def test_stream_is_passed_on_piece_by_piece_and_byte_for_byte():
    """The second piece is sent only after the first has come out at the other end."""
    pieces = b'data: {"a":1}\n\ndata: {"', b'b":2}\r\n\n: ping\n\n', b"data: [DONE]\n\n"

    async def run():
        seen = asyncio.Event()
        decode = streams(*pieces, then=lambda _request: seen.wait())
        async with (
            pair_of(prefiller(), decode) as pair,
            pair.asker.post("/v1/completions", json=ASKED) as answer,
        ):
            first = await asyncio.wait_for(answer.content.readany(), LIMIT_S)
            seen.set()
            return answer.content_type, first, await answer.read(), pair.proxy.tally

    content_type, first, rest, tally = asyncio.run(run())
    assert content_type == "text/event-stream"
    assert first == pieces[0]
    assert rest == b"".join(pieces[1:])
    assert tally.decoded == 1


def test_requests_run_at_the_same_time():
    async def run():
        everybody = asyncio.Barrier(3)
        decode = streams(b"data: 1\n\n", then=lambda _request: everybody.wait())
        async with pair_of(prefiller(), decode) as pair, asyncio.timeout(LIMIT_S):
            return await asyncio.gather(*(pair.ask() for _ in range(3)))

    assert [status for status, _, _ in asyncio.run(run())] == [200, 200, 200]


@pytest.mark.parametrize("side", ["prefill", "decode"])
def test_error_of_a_side_is_passed_on_named_and_not_retried(side):
    error = {"error": {"message": "no such model", "code": 404}}
    ill = says(error, status=404)
    prefill = ill if side == "prefill" else prefiller()
    decode = ill if side == "decode" else decoder()
    status, failed, body, tally = ask_once(prefill, decode)
    assert (status, failed, json.loads(body)) == (404, side, error)
    assert len(prefill.bodies) == 1
    assert len(decode.bodies) == (0 if side == "prefill" else 1)
    assert tally.failed[side] == 1
    assert tally.decoded == 0


@pytest.mark.parametrize("side", ["prefill", "decode"])
def test_side_that_is_not_there_is_a_bad_gateway(side):
    prefill = None if side == "prefill" else prefiller()
    decode = None if side == "decode" else decoder()
    status, failed, body, tally = ask_once(prefill, decode)
    assert (status, failed) == (502, side)
    assert json.loads(body)["error"]["side"] == side
    assert tally.failed[side] == 1


@pytest.mark.parametrize("side", ["prefill", "decode"])
def test_side_that_dies_before_it_answers_is_asked_once(side):
    async def die(request):
        request.transport.abort()
        return web.Response()

    dying = Engine(die)
    prefill = dying if side == "prefill" else prefiller()
    decode = dying if side == "decode" else decoder()
    status, failed, _, _ = ask_once(prefill, decode)
    assert (status, failed) == (502, side)
    assert len(dying.bodies) == 1


@pytest.mark.parametrize(
    "told",
    [
        {"choices": []},
        {"choices": [], "kv_transfer_params": None},
        {"kv_transfer_params": {"do_remote_prefill": False, "remote_block_ids": [[1]]}},
        {"kv_transfer_params": {"do_remote_prefill": True, "remote_block_ids": []}},
        ["nonsense"],
    ],
)
def test_prefill_that_left_no_state_is_never_decoded(told):
    decode = decoder()
    status, failed, body, tally = ask_once(says(told), decode)
    assert (status, failed) == (502, "prefill")
    assert "prefill server" in json.loads(body)["error"]["message"]
    assert decode.bodies == []
    assert tally.prefilled == 0


async def collect(answer: aiohttp.ClientResponse, into: bytearray) -> None:
    while piece := await answer.content.readany():
        into += piece


def test_stream_that_breaks_off_names_the_side_and_has_no_end():
    async def run():
        out = asyncio.Event()

        async def die(request):
            await out.wait()
            request.transport.abort()

        async with (
            pair_of(prefiller(), streams(b"data: 1\n\n", b"never", then=die)) as pair,
            pair.asker.post("/v1/completions", json=ASKED) as answer,
        ):
            seen = bytearray(await answer.content.readany())
            out.set()
            with pytest.raises(aiohttp.ClientPayloadError):
                await collect(answer, seen)
            return answer.status, bytes(seen), pair.proxy.tally

    status, seen, tally = asyncio.run(run())
    assert status == 200
    first, last = seen.split(b"\n\n", 1)
    assert first == b"data: 1"
    assert json.loads(last.strip().removeprefix(b"data: "))["error"]["side"] == "decode"
    assert (tally.decoded, tally.failed["decode"]) == (0, 1)


def test_asker_that_goes_away_takes_its_request_along():
    async def run():
        gone = asyncio.Event()

        async def talk(_request):
            try:
                await asyncio.Event().wait()
            finally:
                gone.set()

        async with pair_of(prefiller(), streams(b"data: 1\n\n", then=talk)) as pair:
            answer = await pair.asker.post("/v1/completions", json=ASKED)
            await answer.content.readany()
            answer.close()
            await asyncio.wait_for(gone.wait(), LIMIT_S)
            return pair.proxy.tally

    tally = asyncio.run(run())
    assert (tally.abandoned, tally.decoded) == (1, 0)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"prompt": ["one", "two"]}, "2 prompts"),
        ({"prompt": [[1, 2], [3]]}, "2 prompts"),
        ({"n": 2}, "n > 1"),
        ({"use_beam_search": True}, "beam search"),
        ({"echo": True, "logprobs": 1}, "log-probabilities of the prompt"),
        ({"prompt_logprobs": 0}, "log-probabilities of the prompt"),
        ({"kv_transfer_params": {"do_remote_decode": True}}, "kv_transfer_params"),
    ],
)
def test_request_that_cannot_be_split_is_refused(wish, said):
    prefill, decode = prefiller(), decoder()
    status, failed, body, tally = ask_once(prefill, decode, {**ASKED, **wish})
    assert (status, failed) == (400, None)
    assert said in json.loads(body)["error"]["message"]
    assert prefill.bodies == decode.bodies == []
    assert (tally.requests, tally.refused) == (1, 1)


@pytest.mark.parametrize("prompt", ["text", ["text"], [5, 6, 7], [[5, 6, 7]]])
def test_one_prompt_may_be_written_in_every_way(prompt):
    assert refusal({**ASKED, "prompt": prompt}) is None


def test_what_is_no_json_object_is_refused():
    async def run():
        async with (
            pair_of(prefiller(), decoder()) as pair,
            pair.asker.post("/v1/completions", data=b"prompt=hello") as answer,
        ):
            return answer.status, await answer.json()

    status, told = asyncio.run(run())
    assert status == 400
    assert "not JSON" in told["error"]["message"]
    assert refusal(["a list"]) is not None


@pytest.mark.parametrize("ill", [(), ("prefill",), ("decode",), ("prefill", "decode")])
def test_health_is_that_of_both(ill):
    prefill, decode = prefiller(), decoder()
    prefill.well, decode.well = "prefill" not in ill, "decode" not in ill

    async def run():
        async with (
            pair_of(prefill, decode) as pair,
            pair.asker.get("/health") as answer,
        ):
            return answer.status, await answer.json()

    status, told = asyncio.run(run())
    assert status == (503 if ill else 200)
    assert told == {"prefill": "prefill" not in ill, "decode": "decode" not in ill}


def test_health_of_a_pair_that_is_not_there():
    async def run():
        async with pair_of(prefiller(), None) as pair, pair.asker.get("/health") as answer:
            return answer.status, await answer.json()

    assert asyncio.run(run()) == (503, {"prefill": True, "decode": False})


def test_models_and_stats_are_reported():
    async def run():
        async with pair_of(prefiller(), decoder()) as pair:
            await pair.ask()
            await pair.ask({**ASKED, "n": 3})
            async with pair.asker.get("/v1/models") as models, pair.asker.get("/stats") as stats:
                return await models.json(), await stats.json()

    models, stats = asyncio.run(run())
    assert models == {"data": [{"id": "m"}]}
    assert stats == {
        "requests": 2,
        "prefilled": 1,
        "decoded": 1,
        "failed": {"prefill": 0, "decode": 0},
        "abandoned": 0,
        "refused": 1,
    }
