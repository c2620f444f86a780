"""A way to a server on which requests fail, are lost, or take long, as planned."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from tests.live_server import QuietHandler
from tests.waiting import LIMIT_S

SLOW_S: Final = 0.5

Fate = Callable[[int], str]
"""Says of the n-th request, from 0, what becomes of it: a key of ``_FATES`` or nothing."""


class BadWay:
    """Hands requests on to a server, but for those that a plan lets fail.

    ``refused`` is answered 503, ``lost`` reaches the server and gets no answer, ``slow`` gets a
    late one.

    Attributes:
        seen: How many requests had which fate.
        url: Where it listens, on loopback.
    """

    def __init__(self, server: tuple[str, int], fate: Fate) -> None:
        self.seen: Counter[str] = Counter()
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._fate = fate
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(*server))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "BadWay":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, line: str) -> str:
        with self._lock:
            fate = self._fate(len(self.requests))
            self.requests.append(line)
            self.seen[fate] += 1
        return fate

    def _handler(self, host: str, port: int) -> type[BaseHTTPRequestHandler]:
        way = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                fate = way._next(self.requestline)
                body = self.body()
                if fate == "refused":
                    self._answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
                    return
                if fate == "slow":
                    time.sleep(SLOW_S)
                server = http.client.HTTPConnection(host, port, timeout=LIMIT_S)
                server.request(self.command, self.path, body, dict(self.headers))
                answer = server.getresponse()
                content = answer.read()
                server.close()
                if fate == "lost":
                    self.close_connection = True
                    self.connection.close()
                    return
                self._answer(answer.status, answer.getheaders(), content)

            def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                kept = [one for one in headers if one[0].lower() not in _OURS]
                for name, value in kept:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        for method in ("GET", "PUT", "DELETE", "HEAD", "POST"):
            setattr(Handler, f"do_{method}", Handler._pass_on)
        return Handler


_OURS: Final = {"content-length", "transfer-encoding", "connection"}
