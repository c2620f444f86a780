"""The connections of the server: how many there are, and how long each may keep silent.

When there are too many, the one that has been silent for the longest time is closed.
"""

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import resource
import threading
import time
from typing import Any, ClassVar, Final

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEADER_S: Final = 10.0
"""From the opening of a connection, or the end of an answer, until a request's header is there."""
_BODY_S: Final = 120.0
"""From then until its body is there."""
_ANSWER_S: Final = 60.0
"""For which nothing of an answer is taken."""
_MOST_CONNECTIONS: Final = 512
_MOST_OF_ADDRESS: Final = 128
_MOST_READ: Final = 2**14
"""Bytes that are read before others have their turn; each may be a chunk of its own."""
_BACKLOG: Final = 128
"""Connections that are taken at once, before there is a look at how many there are."""
_MINUTE_S: Final = 60.0
_MOST_LINES: Final = 20
"""Of the log, a minute."""
_LONGEST: Final = 4_000
"""Characters of one, its traceback included."""
_ARENAS: Final = -8
"""``M_ARENA_MAX`` of ``mallopt(3)``: what one thread has freed serves others of its arena alone."""
_REST_S: Final = 2.0
"""For which the rest of a body is read and thrown away once its request is answered."""
_NETWORK_BITS: Final = 64
"""Of an IPv6 address: what a provider gives to one customer."""


def name_network(host: str) -> str:
    """Name the addresses that one caller may choose from: an IPv4 address, or an IPv6 network."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address.packed, _NETWORK_BITS), strict=False))


class Connection(H11Protocol):
    """A connection that ends when nothing comes, or nothing is taken, for too long."""

    most: ClassVar = _MOST_CONNECTIONS
    _deadline: asyncio.TimerHandle | None = None
    _state: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        transport.max_size = _MOST_READ  # type: ignore[attr-defined]
        self.network = name_network(self.client[0] if self.client else "")
        self._expect()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._expect()

    def pause_writing(self) -> None:
        """Wait until more of the answer is taken."""
        super().pause_writing()
        self._close_after(_ANSWER_S)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._state = None
        self._expect()

    def _expect(self) -> None:
        if self.conn.their_state is self._state:
            return
        self._state = self.conn.their_state
        self.silent_since = self.loop.time()
        limits = {h11.IDLE: _HEADER_S, h11.SEND_BODY: _BODY_S}
        self._close_after(limits.get(self._state))

    def _close_after(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort) if seconds else None

    def _make_room(self) -> None:
        """Close the one that is silent for the longest time, if there are too many."""
        everyone = [
            one
            for one in self.connections
            if isinstance(one, Connection) and not one.transport.is_closing()
        ]
        neighbours = [one for one in everyone if one.network == self.network]
        if len(neighbours) > _MOST_OF_ADDRESS:
            rivals = neighbours
        elif len(everyone) > self.most:
            rivals = everyone
        else:
            return
        silent = (one for one in rivals if one.conn.their_state is h11.IDLE)
        min(silent, key=lambda one: one.silent_since).transport.abort()  # itself, if need be


class UnreadBodies:
    """Ends a connection whose request was answered before all of its body was read.

    The rest is read first, else a reset may lose the answer (RFC 9112, section 9.6).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and see to the end of its body."""
        if scope["type"] != "http" or not _may_have_body(scope):
            await self._app(scope, receive, send)
            return
        is_unread = True

        async def take() -> Message:
            nonlocal is_unread
            message = await receive()
            is_unread = message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and is_unread:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            elif is_unread and not message.get("more_body", False):
                await send({**message, "more_body": True})
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_REST_S):
                        while is_unread:
                            await take()
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, take, answer)


def _may_have_body(scope: Scope) -> bool:
    names = {name for name, value in scope["headers"] if value != b"0"}
    return not names.isdisjoint({b"content-length", b"transfer-encoding"})


class FewLines(logging.Filter):
    """Lets a few lines a minute through, and says how many it has left out."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._since, self._count = -_MINUTE_S, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is let through."""
        with self._lock:
            now = time.monotonic()
            if now - self._since >= _MINUTE_S:
                left_out = self._count - _MOST_LINES
                self._since, self._count = now, 0
                if left_out > 0:
                    said = f"{record.getMessage()} (and {left_out} lines before it were left out)"
                    record.msg, record.args = said, ()
            self._count += 1
            return self._count <= _MOST_LINES


class ShortLines(logging.Formatter):
    """Cuts what is long."""

    def format(self, record: logging.LogRecord) -> str:
        """Give a line, or those of an exception."""
        return super().format(record)[:_LONGEST]


LOG: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"few": {"()": FewLines}},
    "formatters": {"short": {"()": ShortLines, "format": "%(levelname)s: %(message)s"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "filters": ["few"], "formatter": "short"}
    },
    "root": {"level": "WARNING", "handlers": ["stderr"]},
}


def make_server(
    app: ASGIApp, host: str, port: int, log: dict[str, Any] | None = LOG
) -> uvicorn.Server:
    """Make what serves an app, in a process that keeps little of what it freed."""
    ctypes.CDLL(None).mallopt(_ARENAS, 1)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    Connection.most = min(_MOST_CONNECTIONS, files // 2)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=log,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # a header that says who asks is a stranger's
        backlog=_BACKLOG,
    )
    return uvicorn.Server(config)
