"""An address of no page is answered so: Streamlit would show the overview in its place."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from hybridwatch.pages.address import address
from hybridwatch.pages.document import Block, Document, FieldKind, Link, Notice, Paragraph
from hybridwatch.pages.screens import SCREENS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HTML: Final = b"text/html"
_SAVED: Final = "media/"
"""Where Streamlit keeps what a button gives out; a page saved as a file is HTML, too."""
_LONGEST: Final = 80
"""Characters of what was asked for that are shown."""


class KnownPages:
    """Lets through what is a file, a socket or a page that there is.

    Args:
        app: What is behind it. To a path that it does not know it gives its first page.
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
        Notice(FieldKind.LOUD, f"The address asks for /{shown}, which is none of these:"),
        *(Paragraph(Link(screen.title, address(name))) for name, screen in SCREENS.items()),
    )
    body = static_page(Document("No such page", blocks), base=root).encode()
    headers = (
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    )
    await send(
        {"type": "http.response.start", "status": HTTPStatus.NOT_FOUND.value, "headers": headers}
    )
    await send({"type": "http.response.body", "body": body})
