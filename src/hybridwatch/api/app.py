"""The server: routes become addresses, and errors become problems."""

import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Address
from starlette.types import ASGIApp, Receive, Scope, Send

from hybridwatch.api.description import describe
from hybridwatch.api.problem import ProblemError
from hybridwatch.api.routes import PREFIX, ROUTES, WRITES
from hybridwatch.api.serving import AppState, answering, compute_tag, tagged
from hybridwatch.errors import HybridwatchError

_log: Final = logging.getLogger(__name__)
_SOON_S: Final = 5


def make_app(state: AppState, allow: Callable[[str], bool]) -> Starlette:
    """Make the server.

    Args:
        state: What it serves, and whom.
        allow: Whether it answers under this name, as in the header ``Host``.
    """
    described = json.dumps(describe(state.access.is_open)).encode()
    return Starlette(
        routes=[Address("/openapi.json", partial(_describe, described)), *_addresses(state)],
        middleware=[Middleware(_NamedHosts, allow=allow)],
        exception_handlers={
            ProblemError: _problem,
            HTTPException: _refused,
            HybridwatchError: _not_now,
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


class _NamedHosts:
    """Lets through what is for this server by one of its names; a page elsewhere has others."""

    def __init__(self, app: ASGIApp, allow: Callable[[str], bool]) -> None:
        self._app = app
        self._allow = allow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            said = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if len(said) != 1 or not self._allow(said[0]):
                error = ProblemError(
                    HTTPStatus.MISDIRECTED_REQUEST,
                    "Host: this server does not answer under this name; --allow-host adds one",
                    field="Host",
                    expected="a name of this server",
                    found=", ".join(said),
                )
                await error.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _describe(described: bytes, request: Request) -> Response:
    return tagged(
        compute_tag(described), request.headers.get("if-none-match", ""), lambda: described
    )


async def _problem(_: Request, error: Exception) -> Response:
    return cast(ProblemError, error).response()


async def _refused(request: Request, refused: Exception) -> Response:
    error = cast(HTTPException, refused)
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {quote(request.url.path)}: {status.description or status.phrase}"
    return ProblemError(status, detail, headers=dict(error.headers or {})).response()


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
