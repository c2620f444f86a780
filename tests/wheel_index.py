"""An index of wheels by commit, served over HTTP as vLLM publishes its own."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

from tests import live_server


@dataclass
class WheelIndex:
    """What is served.

    Attributes:
        base: Its address.
        files: Status and content by path.
        cut: Paths of which only half is sent.
    """

    base: str = ""
    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)

    @property
    def template(self) -> str:
        """The address with a place for the commit."""
        return f"{self.base}/{{commit}}"

    def add(self, commit: str, *wheels: Path, digests: bool = True) -> None:
        """Publish the wheels of a commit; their page links to the folder above it."""
        lines = []
        for wheel in wheels:
            content = wheel.read_bytes()
            self.files[f"/{commit}/{quote(wheel.name)}"] = 200, content
            digest = f"#sha256={hashlib.sha256(content).hexdigest()}" if digests else ""
            lines.append(f'<a href="../{quote(wheel.name)}{digest}">{wheel.name}</a><br/>')
        page = f"<!DOCTYPE html><html><body>{''.join(lines)}</body></html>"
        self.files[f"/{commit}/vllm/"] = 200, page.encode()


@contextmanager
def serving() -> Iterator[WheelIndex]:
    """Serve an index that is empty at first."""
    index = WheelIndex()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = index.files.get(self.path, (404, b"not found"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                half = self.path in index.cut
                self.wfile.write(content[: len(content) // 2] if half else content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with live_server.serving(live_server.LiveServer(Handler)) as server:
        index.base = server.url
        yield index
