"""What engines that are pretended have in common: they stand behind a live HTTP server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any

from hybridwatch.errors import EngineError
from tests.live_server import LiveServer, serving


class JsonHandler(BaseHTTPRequestHandler):
    """Reads and writes JSON, and is silent."""

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def say(self, status: int, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


@contextmanager
def behind_server(handler: type[BaseHTTPRequestHandler], control: Any) -> Iterator[Any]:
    """Serve a fake; what comes is a live engine as the code under test knows it."""
    with serving(LiveServer(handler)) as http:
        server = SimpleNamespace(
            url=http.url,
            launch=SimpleNamespace(served_name="tiny", engine=SimpleNamespace(disaggregated=False)),
            error=lambda message: EngineError(message, "the log"),
        )
        yield SimpleNamespace(server=server, control=control)
