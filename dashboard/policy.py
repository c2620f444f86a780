"""What may run on the live page: a second wall behind the templates, which escape.

Scripts are those that this server serves and those of Streamlit's own first page, named by their
digests (Content Security Policy, level 3). A text of a record that became markup by mistake could
do nothing. And no other page may show one of ours inside itself, where a click could be led astray.
"""

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FIRST_PAGE: Final = Path(st.__file__).parent / "static" / "index.html"
_INLINE: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class Policy:
    """Sends the policy with every answer.

    Args:
        app: What answers.
    """

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app
        self._told = (
            (b"content-security-policy", _policy().encode()),
            (b"x-frame-options", b"DENY"),  # the same for browsers of before 2015
        )

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request or socket."""

        async def sending(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._told]}
            await send(message)

        await self._app(scope, receive, sending)


def _policy() -> str:
    own = _INLINE.findall(_FIRST_PAGE.read_text(encoding="utf-8"))
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in own)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Streamlit runs a component's script from a blob that it makes itself.
    return (
        f"script-src 'self' blob: {allowed}; object-src 'none'; base-uri 'self'; "
        "frame-ancestors 'none'"
    )
