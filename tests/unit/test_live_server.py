"""What the other tests' servers promise."""

import threading

import httpx
import pytest

from tests.live_server import LiveServer, QuietHandler, serving
from tests.waiting import LIMIT_S


class Handler(QuietHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert self.path != "/wrong", "no such path"
        self.send_response(204)
        self.end_headers()


def test_a_fault_of_a_handler_is_raised_and_not_printed(capfd):
    with (
        pytest.raises(ExceptionGroup) as caught,
        serving(LiveServer(Handler)) as server,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        httpx.get(f"{server.url}/wrong", trust_env=False)
    assert "no such path" in str(caught.value.exceptions[0])
    assert capfd.readouterr() == ("", "")


def test_a_client_that_hangs_up_is_no_fault_and_no_thread_stays(capfd):
    answered, hung_up = threading.Event(), threading.Event()

    class Slow(Handler):
        def do_GET(self) -> None:
            hung_up.wait()
            for _ in range(100):  # until the closed connection says so
                self.wfile.write(b"x" * 65536)
            answered.set()

    before = set(threading.enumerate())
    with serving(LiveServer(Slow)) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(server.url, timeout=httpx.Timeout(LIMIT_S, read=0.2), trust_env=False)
        hung_up.set()
    assert not answered.is_set()
    assert not set(threading.enumerate()) - before
    assert capfd.readouterr() == ("", "")


def test_a_connection_kept_alive_does_not_hold_up_the_end():
    with httpx.Client(trust_env=False) as client:
        with serving(LiveServer(Handler)) as server:
            assert client.get(server.url).status_code == 204
        with pytest.raises(httpx.TransportError):
            client.get(server.url)
