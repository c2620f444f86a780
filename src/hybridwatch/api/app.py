"""The server: routes become addresses, answers become bytes with an ``ETag``, errors problems."""

import hashlib
import json
import logging
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Final, cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Address
from starlette.types import ASGIApp, Receive, Scope, Send

from hybridwatch.api.access import Access
from hybridwatch.api.description import describe
from hybridwatch.api.kept_answers import KeptAnswers
from hybridwatch.api.problem import ProblemError
from hybridwatch.api.queries import parsed
from hybridwatch.api.routes import PREFIX, ROUTES, Route
from hybridwatch.api.view import StoreView
from hybridwatch.errors import HybridwatchError

_log: Final = logging.getLogger(__name__)
_JSON: Final = "application/json"
_DIGITS: Final = 32
_SOON_S: Final = 5


def make_app(view: StoreView, access: Access, allow: Callable[[str], bool]) -> Starlette:
    """Make the server.

    Args:
        view: What it serves.
        access: Says who may ask for what.
        allow: Whether it answers under this name, as in the header ``Host``.
    """
    kept = KeptAnswers()
    described = json.dumps(describe(access.is_open)).encode()
    return Starlette(
        routes=[
            Address("/openapi.json", partial(_describe, described)),
            *(
                Address(
                    f"{PREFIX}{route.path}", _serving(route, view, access, kept), methods=["GET"]
                )
                for route in ROUTES
            ),
        ],
        middleware=[Middleware(_NamedHosts, allow=allow)],
        exception_handlers={
            ProblemError: _problem,
            HTTPException: _refused,
            HybridwatchError: _not_now,
            Exception: _failed,
        },
    )


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


def _serving(
    route: Route, view: StoreView, access: Access, kept: KeptAnswers
) -> Callable[[Request], Response]:
    """Give what answers one question; Starlette runs it in a thread of its own."""

    def serve(request: Request) -> Response:
        access.who(request.headers.getlist("authorization"), route.scope)
        query = parsed(route.query, request.query_params.multi_items())
        known = request.headers.get("if-none-match", "")
        store = view.now()

        named = request.path_params
        asked = json.dumps([route.path, named, query.model_dump()])
        tag = _tag(f"{_VERSION} {route.stamp(store, named)} {asked}".encode())

        def made() -> bytes:
            return json.dumps(route.answer(store, named, query), allow_nan=False).encode()

        return _tagged(tag, known, lambda: kept.get(tag, made))

    return serve


def _tagged(tag: str, known: str, body: Callable[[], bytes]) -> Response:
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if tag in {one.strip().removeprefix("W/") for one in known.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body(), headers=headers, media_type=_JSON)


def _tag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:_DIGITS]}"'


_VERSION: Final = version("hybridwatch")


async def _describe(described: bytes, request: Request) -> Response:
    return _tagged(_tag(described), request.headers.get("if-none-match", ""), lambda: described)


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
