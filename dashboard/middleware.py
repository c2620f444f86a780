"""What stands between a browser and the app: headers, names, a password, pages that there are."""

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
_NAME_SAID: Final = (
    b"This dashboard does not answer under this name. Whoever started it can add the name: "
    b"hybridwatch dashboard --allow-host NAME (docs/dashboard.md, 'Who may look')."
)
_WAIT_S: Final = 1.0
"""Before a wrong password is answered."""
_PASSWORD_SAID: Final = b"This dashboard asks for a password."
_PASSWORD: Final = (b"www-authenticate", b'Basic realm="hybridwatch", charset="UTF-8"')
_HTML: Final = b"text/html"
_SAVED: Final = "media/"
"""Where Streamlit keeps what a button gives out; a page saved as a file is HTML, too."""
_LONGEST: Final = 80
"""Characters of what was asked for that are shown."""


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
    """Sends headers with every answer: a second wall behind the templates, which escape.

    No other page may show one of ours inside itself, where a click could be led astray, and no
    script of another server runs. A script inside the page does: Streamlit's first page has some,
    and to name them by their digests would break with the next Streamlit.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket."""

        async def sending(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        await self._app(scope, receive, sending)


class NamedHosts:
    """Lets through what is for this server by one of its names.

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
            # The request was for somebody else: RFC 9110, 15.5.20.
            await _answer(send, HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _NAME_SAID)

    def _is_ours(self, scope: "Scope") -> bool:
        said = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(said) == 1 and self._hosts.allow(said[0]):
            return True
        _log.warning("refused a request for %s", visible(", ".join(said))[:300] or "no host")
        return False


class Password:
    """Lets through who says the password, by HTTP Basic (RFC 7617).

    The browser asks for it, keeps it until it is closed, and sends it with every request, those for
    files and the page's socket too. The name typed beside it does not matter.
    """

    def __init__(self, app: "ASGIApp", password: str) -> None:
        self._app = app
        self._password = password.encode()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket, or refuse it."""
        said = None if scope["type"] == "lifespan" else _said(scope["headers"])
        if scope["type"] == "lifespan" or (
            said is not None and hmac.compare_digest(said, self._password)
        ):
            await self._app(scope, receive, send)
            return
        if said is not None:
            await asyncio.sleep(_WAIT_S)
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _VIOLATION})
            return
        await _answer(send, HTTPStatus.UNAUTHORIZED, _TEXT, _PASSWORD_SAID, _PASSWORD)


def _said(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Give the password that came with a request; ``None`` when none did."""
    told = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, _, rest = told.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


class KnownPages:
    """Lets through what is a file, a socket or a page that there is.

    To a path that it does not know Streamlit gives its first page.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket, or say that there is no such page."""
        root = scope.get("root_path", "").rstrip("/")
        asked = scope.get("path", "").removeprefix(root).strip("/")
        known = not asked or asked in SCREENS or asked.startswith(_SAVED)
        if scope["type"] != "http" or known:
            await self._app(scope, receive, send)
            return
        is_page = False

        async def sending(message: "Message") -> None:
            nonlocal is_page
            if message["type"] == "http.response.start":
                is_page = message["status"] == HTTPStatus.OK and any(
                    name.lower() == b"content-type" and value.startswith(_HTML)
                    for name, value in message["headers"]
                )
            if not is_page:
                await send(message)

        await self._app(scope, receive, sending)
        if is_page:
            await _refuse(asked, f"{root}/", send)


async def _refuse(asked: str, root: str, send: "Send") -> None:
    from hybridwatch.pages.html import static_page  # takes time, which few need

    shown = asked if len(asked) <= _LONGEST else f"{asked[:_LONGEST]}…"
    blocks: tuple[Block, ...] = (
        Notice(f"The address asks for /{shown}, which is none of these:"),
        *(Paragraph(Link(screen.title, address(name))) for name, screen in SCREENS.items()),
    )
    body = static_page(Document("No such page", blocks), base=root).encode()
    await _answer(send, HTTPStatus.NOT_FOUND, b"text/html; charset=utf-8", body)
