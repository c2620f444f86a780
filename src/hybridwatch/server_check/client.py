"""Speaks to a completions server; what goes wrong there is typed and counted, and is no answer."""

import asyncio
import json
import shlex
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from hybridwatch.errors import ServerCheckError
from hybridwatch.measurement.completions import WANTED, is_without_numbers
from hybridwatch.server_check.answer import Answer, Reply, StreamedError, parse_reply, read_stream

Prompt = str | tuple[int, ...]

COMPLETIONS: Final = "/v1/completions"
EXTRAS: Final[Mapping[str, Any]] = {**WANTED, "return_token_ids": True, "ignore_eos": True}
"""What every request asks besides, unless the server refuses it."""
SALT: Final = "cache_salt"
CUT: Final = "cut stream"
_TIMEOUT: Final = httpx.Timeout(60.0, connect=10.0)
"""For which nothing comes."""
_LONGEST_S: Final = 300.0
"""For one answer, however little comes at a time."""
_KEPT_S: Final = 2.0
_WAITS: Final = 3
"""Times that a request waits for a server that has no room."""
_LONGEST_WAIT_S: Final = 10.0
_TOO_MANY: Final = 429
_ERRORS: Final = 400
_ANSWERLESS: Final = 10
"""Requests in a row without any answer, after which the server counts as gone."""
_LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class Request:
    """A greedy request.

    Attributes:
        salt: Keeps its prompt apart from equal ones in the server's cache; empty for none.
        more: Further keys of its body, or others in place of those above.
    """

    prompt: Prompt
    max_tokens: int
    salt: str = ""
    streamed: bool = False
    more: tuple[tuple[str, Any], ...] = ()

    def with_more(self, **more: Any) -> "Request":
        """Give the same request with further keys."""
        return replace(self, more=(*self.more, *more.items()))


class RequestError(ServerCheckError):
    """No answer to one request.

    Attributes:
        kind: The status, ``timeout``, ``connection``, ``malformed`` or ``cut stream``.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def is_refusal(self) -> bool:
        """Whether the server does not take such a request, rather than failed at it."""
        return self.kind in {"400", "404", "405", "413", "415", "422", "501"}


class UnreachableError(ServerCheckError):
    """The server answers nothing any more."""


class CheckClient:
    """A client of one server; an asynchronous context manager.

    Attributes:
        url: Base address, without ``/v1``.
        model: The name under which the server knows its model.
        extras: What each request asks besides.
        takes_salt: Whether the server takes a salt of its cache.
        requests: That were sent.
        errors: By kind.
    """

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
            raise ServerCheckError(
                f"{parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()}: expected "
                "http://HOST:PORT, with no name or password in it"
            )
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"
        self.model = ""
        self.extras: dict[str, Any] = dict(EXTRAS)
        self.takes_salt = True
        self.requests = 0
        self.errors: Counter[str] = Counter()
        self._has_key = bool(key)
        self._answerless = 0
        is_here = parts.hostname in {"127.0.0.1", "localhost", "::1"}
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=_TIMEOUT,
            trust_env=not is_here,  # no proxy stands before this machine
            # Reading every certificate of the machine takes longer than a request.
            verify=parts.scheme == "https" or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # Servers close an idle connection after some 5 s, and what is sent just then is lost.
            limits=httpx.Limits(max_connections=None, keepalive_expiry=_KEPT_S),
        )

    async def __aenter__(self) -> "CheckClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def body(self, request: Request) -> dict[str, Any]:
        """Write a request down."""
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": request.prompt,
            "max_tokens": request.max_tokens,
            "temperature": 0,
            **self.extras,
        }
        if request.salt and self.takes_salt:
            body[SALT] = request.salt
        if request.streamed:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body | dict(request.more)

    def curl(self, request: Request) -> str:
        """Write a request as a command for a shell; a key stays in its variable."""
        words = ["curl", "-s", f"{self.url}{COMPLETIONS}", "-H", "Content-Type: application/json"]
        line = shlex.join([*words, "-d", json.dumps(self.body(request))])
        key = ' -H "Authorization: Bearer $HYBRIDWATCH_API_KEY"' if self._has_key else ""
        return line + key

    async def read(self, path: str) -> httpx.Response:
        """GET another page than the completions.

        Raises:
            RequestError: There is no answer, or another than 200.
        """
        try:
            answer = await self._http.get(path)
        except httpx.HTTPError as error:
            raise RequestError("connection", f"{self.url}{path}: {_why(error)}") from error
        if answer.status_code != httpx.codes.OK:
            raise _refusal(answer.status_code, answer.text)
        return answer

    async def ask(self, request: Request) -> Answer:
        """Send a request that has one answer.

        Raises:
            RequestError, UnreachableError: There is none.
        """
        reply = await self.ask_whole(request)
        if not reply.is_whole:
            self.errors[CUT] += 1
            raise RequestError(CUT, "the stream ended too early")
        return reply.answers[0]

    async def ask_whole(self, request: Request) -> Reply:
        """Send a request, and again after a while where the server has no room for it.

        Raises:
            RequestError, UnreachableError: There is no answer.
        """
        for last in (False,) * _WAITS + (True,):
            try:
                reply = await self._counted(request)
            except _BusyError as busy:
                if last:
                    raise
                await asyncio.sleep(busy.wait_s)
            else:
                return reply
        raise AssertionError("the last attempt returns or raises")

    async def _counted(self, request: Request) -> Reply:
        self.requests += 1
        begun = time.monotonic()
        try:
            reply = await self._send(request, begun)
        except RequestError as error:
            self.errors[error.kind] += 1
            self._answerless += error.kind in {"connection", "timeout"}
            if self._answerless >= _ANSWERLESS:
                raise UnreachableError(f"{self.url}: gone: {error}") from error
            raise
        self._answerless = 0
        return replace(reply, seconds=time.monotonic() - begun)

    async def _send(self, request: Request, begun: float) -> Reply:
        try:
            async with self._open(request) as answer:
                if answer.status_code >= _ERRORS:
                    text = (await answer.aread()).decode("utf-8", "replace")
                    return _nan_or_refuse(answer, text)
                if request.streamed:
                    return await read_stream(answer.aiter_lines(), begun)
                is_echoed = bool(dict(request.more).get("echo"))
                return parse_reply(json.loads(await answer.aread()), is_echoed=is_echoed)
        except (httpx.TimeoutException, TimeoutError) as error:
            raise RequestError("timeout", f"no answer in time: {_why(error)}") from error
        except httpx.HTTPError as error:
            raise RequestError("connection", _why(error)) from error
        except StreamedError as error:
            raise RequestError("500", f"error in a stream: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RequestError("malformed", f"no completion: {_why(error)}") from error

    @asynccontextmanager
    async def _open(self, request: Request) -> AsyncIterator[httpx.Response]:
        async with (
            asyncio.timeout(_LONGEST_S),
            self._http.stream("POST", COMPLETIONS, json=self.body(request)) as answer,
        ):
            yield answer

    def discount(self, error: RequestError) -> None:
        """Take an error back: the request showed that the server does not take its like."""
        self.errors[error.kind] -= 1
        self.errors += Counter()  # keeps what is above 0

    async def leave(self, request: Request, chunks: int) -> None:
        """Send a request, and go away when so many pieces of its answer have come."""
        self.requests += 1
        try:
            async with self._open(replace(request, streamed=True)) as answer:
                pieces = answer.aiter_lines()
                for _ in range(chunks):
                    await anext(pieces, None)
        except (httpx.TimeoutException, TimeoutError):
            self.errors["timeout"] += 1
        except httpx.HTTPError:
            self.errors["connection"] += 1


class _BusyError(RequestError):
    """The server has no room now."""

    def __init__(self, wait_s: float, message: str) -> None:
        super().__init__(str(_TOO_MANY), message)
        self.wait_s = wait_s


def _nan_or_refuse(answer: httpx.Response, text: str) -> Reply:
    """Give an answer whose logarithms are no numbers, which is no failure to ask."""
    if is_without_numbers(answer.status_code, text) or (
        answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR and is_without_numbers(400, text)
    ):
        return Reply((Answer("", is_nan=True),), None)
    if answer.status_code == _TOO_MANY:
        raise _BusyError(_wait(answer.headers.get("retry-after")), "429: no room")
    raise _refusal(answer.status_code, text)


def _wait(said: str | None) -> float:
    try:
        wanted = float(said) if said is not None else 1.0
    except ValueError:  # a date
        wanted = _LONGEST_WAIT_S
    return min(_LONGEST_WAIT_S, max(0.0, wanted))


def _refusal(status: int, text: str) -> RequestError:
    try:
        body = json.loads(text)
        found = body.get("error", body)
        said = found.get("message", found) if isinstance(found, dict) else found
    except (ValueError, AttributeError):
        said = text
    return RequestError(str(status), f"{status}: {str(said)[:_LONGEST_REASON]}")


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
