"""Real HTTP servers for tests, on loopback, which leave nothing running and hide no fault."""

import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """Prints nothing of what it is asked."""

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class LiveServer(ThreadingHTTPServer):
    """Waits for its handlers at the end, and keeps what they raised.

    A handler that outlives its test would speak into the next one's captured output.
    """

    daemon_threads = False

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.faults: list[Exception] = []
        self._open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        fault = sys.exc_info()[1]
        if isinstance(fault, Exception) and not isinstance(fault, ConnectionError):
            self.faults.append(fault)  # a client that hung up is none

    def hang_up(self) -> None:
        """Let no handler wait for another request of a connection that is kept alive."""
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)


@contextmanager
def serving(server: LiveServer) -> Iterator[LiveServer]:
    """Serve until the end of the block; afterwards nothing of it runs."""
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()
    if server.faults:
        raise ExceptionGroup("in a handler of the test's server", server.faults)
