"""What a browser is told with every answer: a second wall behind the templates, which escape.

No other page may show one of ours inside itself, where a click could be led astray, and no script
of another server runs. A script inside the page does: Streamlit's first page has some, and to name
them by their digests would break with the next Streamlit.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY: Final = (
    "script-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-frame-options", b"DENY"),  # the same for browsers of before 2015
)


class Headers:
    """Sends the headers with every answer.

    Args:
        app: What answers.
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
