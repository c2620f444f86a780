"""Middleware of the server: security headers, host names, a password, a 404 for unknown pages."""

import asyncio
import base64
import binascii
import hmac
import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from hybridwatch.orchestration.nightly.access import Hosts
from hybridwatch.pages.address import address
from hybridwatch.pages.document import Block, Document, Link, Notice, Paragraph
from hybridwatch.pages.screens import SCREENS
from hybridwatch.system.plain_text import visible

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY: Final = (
    "script-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-frame-options", b"DENY"),  # the same for browsers of before 2015
)
_log: Final = logging.getLogger(__name__)
_VIOLATION: Final = 1008
"""Why a socket is closed: RFC 6455, 7.4.1."""
_TEXT: Final = b"text/plain; charset=utf-8"
_WRONG_NAME: Final = (
    b"This dashboard does not answer under this name. Whoever started it can add the name: "
    b"hybridwatch dashboard --allow-host NAME (docs/dashboard.md, 'Who may look')."
)
_WAIT_S: Final = 1.0
"""Before a wrong password is answered."""
_NO_PASSWORD: Final = b"This dashboard asks for a password."
_PASSWORD: Final = (b"www-authenticate", b'Basic realm="hybridwatch", charset="UTF-8"')
_HTML: Final = b"text/html"
_SAVED: Final = "media/"
"""Where Streamlit serves files to download; a saved page among them is HTML, too."""
_SHOWN_LENGTH: Final = 80
"""Characters of the requested path that are shown."""


async def _answer(
    send: "Send", status: HTTPStatus, kind: bytes, body: bytes, *more: tuple[bytes, bytes]
) -> None:
    headers = (
        *more,
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Headers:
    """Adds security headers to every answer: a second defence after the templates, which escape.

    Pages may not be framed (clickjacking), and scripts of other servers do not run. Inline scripts
    do: Streamlit's first page has some, and their digests change with each version of Streamlit.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket."""

        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        await self._app(scope, receive, send_with_headers)


class NamedHosts:
    """Lets requests through whose ``Host`` is a name of this server.

    ``hybridwatch.orchestration.nightly.access`` has the rule.
    """

    def __init__(self, app: "ASGIApp", hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket, or refuse it."""
        if scope["type"] == "lifespan" or self._is_ours(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _VIOLATION})
        else:
            # The request was for another host: RFC 9110, 15.5.20.
            await _answer(send, HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _WRONG_NAME)

    def _is_ours(self, scope: "Scope") -> bool:
        names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(names) == 1 and self._hosts.allow(names[0]):
            return True
        _log.warning("refused a request for %s", visible(", ".join(names))[:300] or "no host")
        return False


class Password:
    """Lets requests through that carry the password, by HTTP Basic (RFC 7617).

    The browser prompts for it and sends it with every request until it is closed, for files and the
    page's socket too. The user name does not matter.
    """

    def __init__(self, app: "ASGIApp", password: str) -> None:
        self._app = app
        self._password = password.encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket, or refuse it."""
        password = None if scope["type"] == "lifespan" else _read_password(scope["headers"])
        if scope["type"] == "lifespan" or (
            password is not None and hmac.compare_digest(password, self._password)
        ):
            await self._app(scope, receive, send)
            return
        if password is not None:
            await asyncio.sleep(_WAIT_S)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _VIOLATION})
            return
        await _answer(send, HTTPStatus.UNAUTHORIZED, _TEXT, _NO_PASSWORD, _PASSWORD)


def _read_password(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The password of a request, ``None`` without one."""
    credentials = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, _, rest = credentials.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


class KnownPages:
    """Answers 404 for a page that does not exist; files and sockets pass.

    Streamlit itself would answer an unknown path with its first page.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket, or answer that there is no such page."""
        root = scope.get("root_path", "").rstrip("/")
        path = scope.get("path", "").removeprefix(root).strip("/")
        known = not path or path in SCREENS or path.startswith(_SAVED)
        if scope["type"] != "http" or known:
            await self._app(scope, receive, send)
            return
        is_page = False

        async def send_unless_page(message: "Message") -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                is_page = message["status"] == HTTPStatus.OK and any(
                    name.lower() == b"content-type" and value.startswith(_HTML)
                    for name, value in message["headers"]
                )
            if not is_page:
                await send(message)

        await self._app(scope, receive, send_unless_page)
        if is_page:
            await _refuse(path, f"{root}/", send)


async def _refuse(path: str, root: str, send: "Send") -> None:
    from hybridwatch.pages.html import static_page  # takes time, which few need

    shown = path if len(path) <= _SHOWN_LENGTH else f"{path[:_SHOWN_LENGTH]}…"
    blocks: tuple[Block, ...] = (
        Notice(f"The address asks for /{shown}, which is none of these:"),
        *(Paragraph(Link(screen.title, address(name))) for name, screen in SCREENS.items()),
    )
    body = static_page(Document("No such page", blocks), base=root).encode()
    await _answer(send, HTTPStatus.NOT_FOUND, b"text/html; charset=utf-8", body)
