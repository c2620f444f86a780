"""The API's own server, in a thread of the test, on a port that is free."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from starlette.applications import Starlette

from hybridwatch.api.app import Access, AppState, Limits, make_app
from hybridwatch.api.connections import make_server
from hybridwatch.api.view import StoreView
from hybridwatch.database.tokens import Scope, open_tokens
from hybridwatch.history.checkout import Checkout
from hybridwatch.orchestration.nightly.access import read_hosts
from tests.waiting import LIMIT_S, wait_until


def app_over(results: Path, *, reads_need_one: bool = False, per_s: float = 1e6) -> Starlette:
    """Make the server of a store, as ``hybridwatch serve`` does."""
    access = Access(open_tokens(results), reads_need_one=reads_need_one)
    desk = AppState(StoreView(results, Checkout), access, Limits(per_s))
    return make_app(desk, read_hosts("127.0.0.1").allow)


def token_for(results: Path, *scopes: Scope, name: str = "robot") -> dict[str, str]:
    """Make a token, and give the header that shows it."""
    text = open_tokens(results).make(name, scopes, datetime.now(UTC), None)
    return {"authorization": f"Bearer {text}"}


@contextmanager
def serving(app: Starlette) -> Iterator[httpx.Client]:
    """Serve and give what speaks to it; always ends it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = make_server(app, "127.0.0.1", 0, log=None)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            wait_until(lambda: server.started, "a server")
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=LIMIT_S) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()
