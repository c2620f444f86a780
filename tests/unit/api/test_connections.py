"""Connections that say nothing, too slowly or too much, and what the log makes of them."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from time import sleep

import httpx
import pytest

from hybridwatch.api import connections
from hybridwatch.api.connections import FewLines, ShortLines, name_network
from hybridwatch.database.tokens import Scope
from tests.unit.api.serving import app_over, serving, token_for
from tests.unit.database.stores import add
from tests.waiting import LIMIT_S, wait_until

HALF = b"GET /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    add(tmp_path, 1)
    return tmp_path


@pytest.fixture
def client(results: Path) -> Iterator[httpx.Client]:
    with serving(app_over(results)) as speaking:
        yield speaking


def opened(client: httpx.Client, said: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=LIMIT_S)
    made.sendall(said)
    return made


def heard(connection: socket.socket) -> bytes:
    """Give all that comes until the server closes."""
    said = b""
    try:
        while some := connection.recv(2**16):
            said += some
    except ConnectionResetError:
        pass
    return said


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("said", [b"", HALF, b"G"])
def test_whoever_does_not_end_a_header_is_hung_up_on(client, monkeypatch, said) -> None:
    monkeypatch.setattr(connections, "_HEADER_S", 0.2)
    with opened(client, said) as silent:
        assert heard(silent) == b""


def test_a_header_that_comes_byte_by_byte_is_not_waited_for_either(client, monkeypatch) -> None:
    monkeypatch.setattr(connections, "_HEADER_S", 0.5)
    with opened(client, HALF) as slow:
        slow.settimeout(0.05)

        def is_over() -> bool:
            try:
                slow.sendall(b"a")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until(is_over, "an end")


def test_a_second_header_is_waited_for_no_longer_than_the_first(client, monkeypatch) -> None:
    monkeypatch.setattr(connections, "_HEADER_S", 0.5)
    with opened(client, HALF + b"\r\n" + HALF) as silent:
        assert heard(silent).count(b"HTTP/1.1 200") == 1


def test_a_connection_that_is_used_lives_longer_than_a_header_may_take(client, monkeypatch) -> None:
    monkeypatch.setattr(connections, "_HEADER_S", 1.0)
    with closing(HTTPConnection("127.0.0.1", client.base_url.port or 0)) as used:
        used.connect()
        used.auto_open = 0
        for _ in range(5):
            used.request("GET", "/v1/runs")
            assert used.getresponse().read()
            sleep(0.3)


def test_a_body_that_does_not_come_is_not_waited_for(client, results, monkeypatch) -> None:
    monkeypatch.setattr(connections, "_BODY_S", 0.2)
    shown = token_for(results, Scope.INGEST)["authorization"].encode()
    head = b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with opened(
        client, head + b"Authorization: " + shown + b"\r\nContent-Length: 9\r\n\r\n{"
    ) as slow:
        assert heard(slow) == b""


def test_a_crowd_of_silent_connections_shuts_nobody_out(client) -> None:
    with ExitStack() as stack:
        crowd = [stack.enter_context(opened(client, HALF)) for _ in range(300)]
        assert client.get("/v1/runs").status_code == 200
        wait_until(lambda: sum(map(is_closed, crowd)) >= 300 - connections._MOST_OF_ADDRESS, "room")
        assert client.get("/v1/runs").status_code == 200
        assert not is_closed(crowd[-1]), "the first to come go first"


def test_two_lengths_of_one_body_are_refused_and_nothing_follows(client) -> None:
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with opened(client, HALF + both + HALF + b"\r\n") as smuggler:
        said = heard(smuggler)
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1
    assert b"found both" in said


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_whoever_has_a_network_is_one_caller(host: str, network: str) -> None:
    assert name_network(host) == network


def test_a_log_has_few_lines_a_minute_and_says_how_many_it_left_out(monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("hybridwatch.api.connections.time.monotonic", lambda: clock[0])
    few = FewLines()

    def line() -> logging.LogRecord:
        return logging.LogRecord("a", logging.WARNING, "", 0, "said %s", ("it",), None)

    assert sum(few.filter(line()) for _ in range(1_000)) == connections._MOST_LINES
    clock[0] += 60
    said = line()
    assert few.filter(said)
    assert said.getMessage() == "said it (and 980 lines before it were left out)"
    long = logging.LogRecord("a", logging.WARNING, "", 0, "x" * 10**6, (), None)
    assert len(ShortLines().format(long)) == connections._LONGEST


LONG = 2**24
"""Bytes, more than the sockets of both sides hold."""
REFUSED = b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def test_a_caller_who_is_refused_while_still_sending_hears_why(client) -> None:
    with opened(client, REFUSED + b"Content-Length: %d\r\n\r\n" % LONG) as connection:
        connection.sendall(bytes(LONG))
        said = b""
        while some := connection.recv(2**16):
            said += some
    assert said.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close\r\n" in said
    assert b"this needs a token" in said


def test_the_rest_of_a_refused_body_is_not_waited_for_long(client, monkeypatch) -> None:
    monkeypatch.setattr(connections, "_REST_S", 0.1)
    with opened(client, REFUSED + b"Content-Length: 9\r\n\r\n{") as connection:
        assert heard(connection).startswith(b"HTTP/1.1 401 ")
