"""The server, from a request to its answer: who asks, whether they may, and how often."""

import hashlib
import json
import logging
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Final, cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Address
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ConnectionScope

from hybridwatch.api.connections import UnreadBodies, name_network
from hybridwatch.api.queries import Nothing, ProblemError, parsed
from hybridwatch.api.routes import JSON, PREFIX, ROUTES, WRITES, Route, Write, describe
from hybridwatch.api.uploads import Uploads
from hybridwatch.api.view import Aging, KeptAnswers, StoreView
from hybridwatch.database.tokens import Scope, Token, Tokens, compute_digest
from hybridwatch.errors import HybridwatchError, TokenError

_BURST_S: Final = 2.0
"""A full bucket holds what comes in so many seconds."""
_log: Final = logging.getLogger(__name__)
_LOOK_S: Final = 2.0
"""How long a token that was revoked is still taken."""
_NOTE_S: Final = 60.0
"""How often it is noted that a token is in use: a write to the database each time."""
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_REALM: Final = 'Bearer realm="hybridwatch"'


class Limits:
    """The buckets of callers, each filled by ``per_s`` requests a second. Threads share them."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._full = max(1.0, per_s * _BURST_S)
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, whose: str) -> None:
        """Take one request out of a bucket."""
        with self._lock:
            now = time.monotonic()
            left, at = self._left.get(whose, (self._full, now))
            left = min(self._full, left + (now - at) * self._per_s)
            is_empty = left < 1
            self._left[whose] = (left if is_empty else left - 1, now)
            self._left.move_to_end(whose)
            # Forgotten are those that are full again, and none that a caller could wish away.
            while now - next(iter(self._left.values()))[1] > self._full / self._per_s:
                self._left.popitem(last=False)
        if is_empty:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"expected at most {self._per_s:g} requests a second of one token, or of one "
                "address without",
                headers={"retry-after": str(math.ceil((1 - left) / self._per_s))},
            )


class Access:
    """Knows the tokens. Threads share it."""

    def __init__(self, tokens: Tokens, *, reads_need_one: bool) -> None:
        self.reads_need_one = reads_need_one
        self._tokens = tokens
        self._known = Aging[Mapping[str, Token]](lambda _: tokens.by_digest(), _LOOK_S)
        self._lock = threading.Lock()
        self._noted: dict[str, float] = {}

    def is_open(self, scope: Scope) -> bool:
        """Whether anybody may, without a token."""
        return scope is Scope.READ and not self.reads_need_one

    def who(self, given: Sequence[str], scope: Scope) -> str:
        """Say whose token came with the headers ``Authorization``; empty where none is needed."""
        if not given:
            if self.is_open(scope):
                return ""
            raise _refuse_token(HTTPStatus.UNAUTHORIZED, "this needs a token", scope)
        token = self._token(given)
        if token is None or not token.is_valid(datetime.now(UTC)):
            said = "the token is unknown, revoked or expired"
            raise _refuse_token(HTTPStatus.UNAUTHORIZED, said, scope, 'error="invalid_token"')
        self._note(token)
        if not self.is_open(scope) and scope not in token.scopes:
            said = f"the token {token.name!r} does not allow this"
            challenge = f'error="insufficient_scope", scope="{scope.value}"'
            raise _refuse_token(HTTPStatus.FORBIDDEN, said, scope, challenge)
        return token.name

    def name(self, given: Sequence[str]) -> str:
        """Name the valid token of the headers; empty where there is none, or tokens are unknown."""
        try:
            token = self._token(given)
        except TokenError:
            return ""
        return token.name if token and token.is_valid(datetime.now(UTC)) else ""

    def _token(self, given: Sequence[str]) -> Token | None:
        found = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        return self._known.get().get(compute_digest(found[1])) if found else None

    def _note(self, token: Token) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._noted.get(token.name, -_NOTE_S) < _NOTE_S:
                return
            self._noted[token.name] = now
        try:
            self._tokens.used(token.name, datetime.now(UTC))
        except TokenError as error:
            _log.warning("%s", error)  # who may read a store that cannot be written reads on


def _refuse_token(status: HTTPStatus, said: str, scope: Scope, challenge: str = "") -> ProblemError:
    return ProblemError(
        status,
        f"Authorization: {said}",
        field="Authorization",
        expected=f"Bearer, and a token with the scope {scope.value}",
        headers={"www-authenticate": ", ".join(filter(None, [_REALM, challenge]))},
    )


_DIGITS: Final = 32
_VERSION: Final = version("hybridwatch")


@dataclass(frozen=True, slots=True)
class AppState:
    """What it takes to answer."""

    view: StoreView
    access: Access
    limits: Limits
    kept: KeptAnswers = field(default_factory=KeptAnswers)
    uploads: Uploads = field(default_factory=Uploads)

    def admit(self, request: Request, scope: Scope) -> str:
        """Admit a caller; gives the name of their token, empty without one."""
        return self.access.who(request.headers.getlist("authorization"), scope)

    def read(self, route: Route, request: Request) -> Response:
        """Answer a question."""
        self.admit(request, Scope.READ)
        query = parsed(route.query, request.query_params.multi_items())
        store, named = self.view.now(), request.path_params
        asked = json.dumps([route.path, named, query.model_dump()])
        tag = compute_tag(f"{_VERSION} {route.stamp(store, named)} {asked}".encode())

        def made() -> bytes:
            answer = route.answer(store, named, query)
            if isinstance(answer, bytes):
                return answer
            return json.dumps(answer, allow_nan=False).encode()

        known = request.headers.get("if-none-match", "")
        return tagged(tag, known, lambda: self.kept.get(tag, made))

    async def write(self, write: Write, request: Request) -> Response:
        """Do something; the body of a request that may not is never read."""
        who = await run_in_threadpool(self.admit, request, write.scope)
        parsed(Nothing, request.query_params.multi_items())
        async with self.uploads.take(request, write.upload, who) as files:
            handler = partial(write.handler, self.view, request.path_params, who)
            done = await run_in_threadpool(handler, files)
        headers = {"location": PREFIX + quote(done.location), "cache-control": "no-store"}
        return Response(json.dumps(done.content, allow_nan=False), done.status, headers, JSON)


def answering(state: AppState, reads: Route | None, writes: Write | None) -> Callable[..., object]:
    """Give what answers at one address."""

    async def answer(request: Request) -> Response:
        if request.method == "POST" and writes is not None:
            return await state.write(writes, request)
        if request.method in {"GET", "HEAD"} and reads is not None:
            return await run_in_threadpool(state.read, reads, request)
        allowed = ["GET, HEAD"] * (reads is not None) + ["POST"] * (writes is not None)
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(allowed)})

    return answer


def tagged(tag: str, known: str, body: Callable[[], bytes]) -> Response:
    """Answer with a tag; with the tag alone if it is known."""
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if tag in {one.strip().removeprefix("W/") for one in known.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body(), headers=headers, media_type=JSON)


def compute_tag(content: bytes) -> str:
    """Make a tag of what an answer hangs on."""
    return f'"{hashlib.sha256(content).hexdigest()[:_DIGITS]}"'


_SOON_S: Final = 5


def make_app(state: AppState, allow: Callable[[str], bool]) -> Starlette:
    """Make the server."""
    described = json.dumps(describe(reads_need_one=state.access.reads_need_one)).encode()
    return Starlette(
        routes=[Address("/openapi.json", partial(_describe, described)), *_addresses(state)],
        middleware=[Middleware(UnreadBodies), Middleware(_Admission, state=state, allow=allow)],
        exception_handlers={
            ProblemError: _problem,
            HTTPException: _refuse,
            HybridwatchError: _not_now,
            ClientDisconnect: _gone,
            Exception: _failed,
        },
    )


def _addresses(state: AppState) -> Iterator[Address]:
    reads = {route.path: route for route in ROUTES}
    writes = {write.path: write for write in WRITES}
    for path in dict.fromkeys([*reads, *writes]):
        answer = answering(state, reads.get(path), writes.get(path))
        yield Address(f"{PREFIX}{path}", answer, methods=_METHODS)


_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
"""Those that an address does not have are refused with the names of those that it has."""


class _Admission:
    """Lets a request through that is counted, clear, and for this server by one of its names."""

    def __init__(self, app: ASGIApp, state: AppState, allow: Callable[[str], bool]) -> None:
        self._app = app
        self._state = state
        self._allow = allow

    async def __call__(self, scope: ConnectionScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._check(Request(scope))
            except ProblemError as error:
                await error.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _check(self, request: Request) -> None:
        given = request.headers.getlist("authorization")
        who = await run_in_threadpool(self._state.access.name, given) if given else ""
        network = name_network(request.client.host if request.client else "")
        self._state.limits.take(f"token {who}" if who else f"address {network}")
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            # A proxy may have gone by the other one: what follows is no one's request for sure.
            said = "expected Content-Length or Transfer-Encoding, found both"
            raise ProblemError(HTTPStatus.BAD_REQUEST, said)
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._allow(hosts[0]):
            raise ProblemError(
                HTTPStatus.MISDIRECTED_REQUEST,
                "Host: this server does not answer under this name; --allow-host adds one",
                field="Host",
                expected="a name of this server",
                found=", ".join(hosts),
            )


async def _describe(described: bytes, request: Request) -> Response:
    return tagged(
        compute_tag(described), request.headers.get("if-none-match", ""), lambda: described
    )


async def _problem(_: Request, error: Exception) -> Response:
    return cast(ProblemError, error).response()


async def _refuse(request: Request, refused: Exception) -> Response:
    error = cast(HTTPException, refused)
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {quote(request.url.path)}: {status.description or status.phrase}"
    return await _problem(request, ProblemError(status, detail, headers=dict(error.headers or {})))


async def _gone(_: Request, __: Exception) -> Response:
    """Answer one that hung up, which no one reads."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _not_now(_: Request, error: Exception) -> Response:
    """Answer when the store cannot be read just now; why is for the log, it names files."""
    _log.warning("%s", error)
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the store cannot be read now; the server's log says why",
        headers={"retry-after": str(_SOON_S)},
    ).response()


async def _failed(_: Request, __: Exception) -> Response:
    """Answer when we are wrong; the server logs where."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return ProblemError(status, "an error of the server; its log says more").response()
