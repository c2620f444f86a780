"""The one address of a disaggregated pair: prefill there, then decode here, nothing tried twice.

- ``POST /v1/completions``: the prompt goes to the prefill server for a single token, the handle of
its state to the decode server with the request, whose answer is passed on, byte for byte;
- ``GET /health``: 200 when both servers are well, otherwise 503 and which one is not;
- ``GET /v1/models``: the decode server's;
- ``GET /stats``: a ``ProxyTally``, by which a caller can prove which way its requests went.

A prefill answer without a state is an error: the decode server would compute the prompt. Errors
keep status and body, and get the header ``FAILED_SIDE``.
"""

import argparse
import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp import web

FAILED_SIDE: Final = "X-Hybridwatch-Failed-Side"
"""Response header: ``prefill`` or ``decode``, the half that failed."""

PREFILL: Final = "prefill"
DECODE: Final = "decode"

_HOST: Final = "127.0.0.1"
_COMPLETIONS: Final = "/v1/completions"
_CONNECT_S: Final = 5.0
_HEALTH_S: Final = 4.0
"""Below the 5 s that an asker of /health usually waits."""
_LARGEST_BODY: Final = 64 * 1024**2
_SHUTDOWN_S: Final = 0.5

_log = logging.getLogger("hybridwatch.pair_proxy")

FOR_DECODER: Final = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""What a request asks of a prefill server: keep the state, and say where it is."""
_NOT_FOR_PREFILL: Final = frozenset({"min_tokens", "stream_options"})
"""Refused by a server that shall answer one token in one piece."""


@dataclass(slots=True)
class ProxyTally:
    """What became of the requests; each ends in one of ``decoded`` to ``refused``."""

    requests: int = 0
    prefilled: int = 0
    decoded: int = 0
    failed: dict[str, int] = field(default_factory=lambda: {PREFILL: 0, DECODE: 0})
    abandoned: int = 0
    refused: int = 0


class _SideError(Exception):
    def __init__(self, side: str, status: int, body: bytes, content_type: str) -> None:
        super().__init__(body.decode(errors="replace"))
        self.side = side
        self.status = status
        self.body = body
        self.content_type = content_type

    def response(self) -> web.Response:
        headers = {FAILED_SIDE: self.side, "Content-Type": self.content_type}
        return web.Response(status=self.status, body=self.body, headers=headers)


def _side_error(side: str, message: str) -> _SideError:
    """An error that is ours to word, in the form that vLLM gives its own."""
    status = HTTPStatus.BAD_GATEWAY
    error = {"message": f"{side} server: {message}", "type": "BadGateway", "code": status}
    body = json.dumps({"error": {**error, "side": side}}).encode()
    return _SideError(side, status, body, "application/json")


def refusal(body: object) -> str | None:
    """Say why a completion request cannot be split over a pair; ``None`` when it can.

    One state is handed over per request, and the decode server never computes a prompt.
    """
    if not isinstance(body, dict):
        return "expected a JSON object"
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int):
        return f"{len(prompt)} prompts in one request; send a request for each"
    if (body.get("n") or 1) != 1 or body.get("use_beam_search"):
        return "n > 1 and beam search need several sequences; send a request for each"
    scored = body.get("echo") and body.get("logprobs") is not None
    if scored or body.get("prompt_logprobs") is not None:
        return "log-probabilities of the prompt: the decode server does not compute the prompt"
    if body.get("kv_transfer_params") is not None:
        return "kv_transfer_params are set on the way, not by the asker"
    return None


class PairProxy:
    """Sends completions to the URL ``prefill``, which computes prompts, then to ``decode``."""

    def __init__(self, prefill: str, decode: str) -> None:
        self._urls = {PREFILL: prefill, DECODE: decode}
        self.tally = ProxyTally()
        self._session: aiohttp.ClientSession

    def application(self) -> web.Application:
        """The web application; opens its connections when it is started."""
        application = web.Application(client_max_size=_LARGEST_BODY)
        application.cleanup_ctx.append(self._client)
        application.router.add_post(_COMPLETIONS, self._complete)
        application.router.add_get("/health", self._health)
        application.router.add_get("/v1/models", self._models)
        application.router.add_get("/stats", self._stats)
        return application

    async def _client(self, _application: web.Application) -> AsyncIterator[None]:
        # A connection each: a server closes kept ones after seconds, and a request that is sent
        # into that moment fails although both servers work.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        # How long a request may take is its asker's business.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding",),
        ) as self._session:
            yield

    async def _stats(self, _request: web.Request) -> web.Response:
        return web.json_response(asdict(self.tally))

    async def _health(self, _request: web.Request) -> web.Response:
        well = await asyncio.gather(*(self._is_well(url) for url in self._urls.values()))
        status = HTTPStatus.OK if all(well) else HTTPStatus.SERVICE_UNAVAILABLE
        return web.json_response(dict(zip(self._urls, well, strict=True)), status=status)

    async def _is_well(self, url: str) -> bool:
        timeout = aiohttp.ClientTimeout(total=_HEALTH_S)
        try:
            async with self._session.get(f"{url}/health", timeout=timeout) as answer:
                return answer.status == HTTPStatus.OK
        except (aiohttp.ClientError, OSError):  # TimeoutError is one of the latter
            return False

    async def _models(self, _request: web.Request) -> web.Response:
        try:
            async with self._session.get(f"{self._urls[DECODE]}/v1/models") as answer:
                body = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            return _side_error(DECODE, _failure_text(error)).response()
        return web.Response(
            status=answer.status, body=body, headers={"Content-Type": _read_type(answer)}
        )

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        received = await request.read()
        self.tally.requests += 1
        try:
            body = json.loads(received)
        except ValueError as error:
            return self._refuse(f"not JSON: {error}")
        if reason := refusal(body):
            return self._refuse(reason)
        try:
            handle = await self._prefill(body)
            self.tally.prefilled += 1
            response = await self._decode(request, {**body, "kv_transfer_params": handle})
        except _SideError as error:
            self.tally.failed[error.side] += 1
            _log.warning("%s: status %d: %s", error.side, error.status, error)
            return error.response()
        except asyncio.CancelledError:
            self.tally.abandoned += 1
            raise
        return response

    def _refuse(self, reason: str) -> web.Response:
        self.tally.refused += 1
        status = HTTPStatus.BAD_REQUEST
        error = {"message": reason, "type": "BadRequestError", "code": status}
        return web.json_response({"error": error}, status=status)

    async def _prefill(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Have the prompt computed; give where the state is, as the decode server expects it."""
        kept = {key: value for key, value in body.items() if key not in _NOT_FOR_PREFILL}
        prefill_body = {
            **kept,
            "max_tokens": 1,
            "stream": False,
            "kv_transfer_params": FOR_DECODER,
        }
        try:
            async with self._session.post(
                self._urls[PREFILL] + _COMPLETIONS, json=prefill_body
            ) as answer:
                received = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _side_error(PREFILL, _failure_text(error)) from error
        if answer.status != HTTPStatus.OK:
            raise _SideError(PREFILL, answer.status, received, _read_type(answer))
        return _handle_in(received)

    async def _decode(self, request: web.Request, body: Mapping[str, Any]) -> web.StreamResponse:
        try:
            answer = await self._session.post(self._urls[DECODE] + _COMPLETIONS, json=body)
        except (aiohttp.ClientError, OSError) as error:
            raise _side_error(DECODE, _failure_text(error)) from error
        async with answer:
            if answer.status == HTTPStatus.OK and answer.content_length is None:
                return await self._pass_on(request, answer)
            whole = await _read(answer.content.read)
        if answer.status != HTTPStatus.OK:
            raise _SideError(DECODE, answer.status, whole, _read_type(answer))
        self.tally.decoded += 1
        return web.Response(body=whole, headers={"Content-Type": _read_type(answer)})

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _read_type(answer)})
        try:
            await response.prepare(request)
            while piece := await _read(answer.content.readany):
                await response.write(piece)
            await response.write_eof()
        except _SideError as error:
            self.tally.failed[error.side] += 1
            _log.warning("%s: broke off: %s", error.side, error)
            await _break_off(request, response, error)
        except (aiohttp.ClientError, OSError):
            # Only writing is left to fail: the asker is gone.
            self.tally.abandoned += 1
        else:
            self.tally.decoded += 1
        return response


def _handle_in(received: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(received)
    except ValueError as error:
        raise _side_error(PREFILL, _failure_text(error)) from error
    handle = answer.get("kv_transfer_params") if isinstance(answer, dict) else None
    if not isinstance(handle, dict):
        raise _side_error(PREFILL, "answered without kv_transfer_params")
    if not (handle.get("do_remote_prefill") and handle.get("remote_block_ids")):
        raise _side_error(PREFILL, "left no state for the decode server to fetch")
    return handle


async def _read(read: Callable[[], Awaitable[bytes]]) -> bytes:
    """Read from the decode server, and distinguish its breaking off from our client's."""
    try:
        return await read()
    except (aiohttp.ClientError, OSError) as error:
        raise _side_error(DECODE, f"broke off: {_failure_text(error)}") from error


async def _break_off(request: web.Request, response: web.StreamResponse, error: _SideError) -> None:
    """End a stream that has begun by an event, and without its end: no one takes it for whole."""
    with suppress(aiohttp.ClientError, OSError):
        await response.write(b"\n\ndata: " + error.body + b"\n\n")
    if request.transport is not None:
        request.transport.close()


def _read_type(answer: aiohttp.ClientResponse) -> str:
    return answer.headers.get("Content-Type", "application/octet-stream")


def _failure_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"  # some have no text of their own


def main() -> None:
    """Serve until a signal asks for an end."""
    parser = argparse.ArgumentParser(description="Proxy of a disaggregated pair.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--prefill", required=True, metavar="URL")
    parser.add_argument("--decode", required=True, metavar="URL")
    wished = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    web.run_app(
        PairProxy(wished.prefill, wished.decode).application(),
        host=_HOST,
        port=wished.port,
        access_log=None,
        print=None,
        shutdown_timeout=_SHUTDOWN_S,
        # An asker that goes away takes its request with it, as at a single engine.
        handler_cancellation=True,
    )


if __name__ == "__main__":
    main()
