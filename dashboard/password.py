"""A password before everything that the server has, by HTTP Basic (RFC 7617).

The browser asks for it, keeps it until it is closed, and sends it with every request, those for
files and the page's socket too. The name typed beside it does not matter.
"""

import asyncio
import base64
import binascii
import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_WAIT_S: Final = 1.0
"""Before a wrong password is answered."""
_VIOLATION: Final = 1008
"""Why a socket is closed: RFC 6455, 7.4.1."""
_SAID: Final = b"This dashboard asks for a password."
_HEADERS: Final = (
    (b"www-authenticate", b'Basic realm="hybridwatch", charset="UTF-8"'),
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(_SAID)).encode()),
    (b"cache-control", b"no-store"),
)


class Password:
    """Lets through who says the password.

    Args:
        app: What is behind it.
        password: What has to be said.
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
        await send({"type": "http.response.start", "status": 401, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _SAID})


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
