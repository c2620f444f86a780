"""Requests under names that nobody gave this server are refused.

``hybridwatch.orchestration.nightly.access`` has the rule.
"""

import logging
from typing import TYPE_CHECKING, Final

from hybridwatch.orchestration.nightly.access import Hosts
from hybridwatch.system.plain_text import visible

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_log: Final = logging.getLogger(__name__)

_VIOLATION: Final = 1008
"""Why a socket is closed: RFC 6455, 7.4.1."""
_MISDIRECTED: Final = 421
"""The request was for somebody else: RFC 9110, 15.5.20."""
_SAID: Final = (
    b"This dashboard does not answer under this name. Whoever started it can add the name: "
    b"hybridwatch dashboard --allow-host NAME (docs/dashboard.md, 'Who may look')."
)
_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(_SAID)).encode()),
    (b"cache-control", b"no-store"),
)


class NamedHosts:
    """Lets through what is for this server by one of its names.

    Args:
        app: What is behind it.
        hosts: The names.
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
            await send({"type": "http.response.start", "status": _MISDIRECTED, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": _SAID})

    def _is_ours(self, scope: "Scope") -> bool:
        said = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(said) == 1 and self._hosts.allow(said[0]):
            return True
        _log.warning("refused a request for %s", visible(", ".join(said))[:300] or "no host")
        return False
