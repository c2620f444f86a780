"""What engines that are pretended have in common: they stand behind a live HTTP server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any

from hybridwatch.errors import EngineError
from tests.live_server import LiveServer, QuietHandler, serving


class JsonHandler(QuietHandler):
    """Reads and writes JSON."""

    def question(self) -> Any:
        return json.loads(self.body())

    def say(self, status: int, answer: dict[str, Any]) -> None:
        self.reply(status, json.dumps(answer).encode())


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
