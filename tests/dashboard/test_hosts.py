"""Who asks under a foreign name gets nothing: a real server, and raw requests."""

import socket
from collections.abc import Iterator
from typing import Final

import pytest

from hybridwatch.cli import dashboard as verb
from hybridwatch.orchestration.nightly.access import read_hosts
from hybridwatch.records.store import write_run
from tests.builders import a_comparison
from tests.command_line import run_verb
from tests.dashboard.asking import SOCKET, Ask, asking
from tests.dashboard.server import serving

PROXY: Final = "watch.example.org"
FOREIGN: Final = "rebound.example.net"
ANYWHERE: Final = "0.0.0.0"  # noqa: S104 (nothing is bound)
PATHS: Final = ("/", "/run", "/_stcore/health", "/_stcore/host-config", SOCKET)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A dashboard with a record, behind a proxy of a name."""
    results = tmp_path_factory.mktemp("store")
    write_run(results, a_comparison({"ttft": (0.1,) * 3}, {"ttft": (0.1,) * 3}))
    with serving(results, words=["--allow-host", PROXY]) as server:
        yield asking(server.address)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST.", "[::1]", PROXY])
def test_a_name_that_was_given_is_served(ask, path, name) -> None:
    status, _, _ = ask(path, name)
    assert status == (101 if path == SOCKET else 200)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [FOREIGN, "localhost.example.net", "127.0.0.1.example.net"])
def test_a_foreign_name_gets_nothing_though_the_origin_is_the_same(ask, path, name) -> None:
    status, _, body = ask(path, name)
    assert status == (403 if path == SOCKET else 421)
    assert len(body) < 300
    assert b"hybridwatch dashboard --allow-host NAME" in body or path == SOCKET


@pytest.mark.parametrize("path", PATHS)
def test_files_and_no_name_and_two_names(ask, path) -> None:
    refused = {403, 421, 400}
    assert ask(path)[0] in refused
    assert ask(path, "localhost", FOREIGN)[0] in refused
    assert ask(path, "x@localhost", port=False)[0] in refused


def test_a_static_file_is_for_named_hosts_only(ask) -> None:
    page = ask("/", "localhost")[2].decode()
    script = "/" + page.split('src="./')[1].split('"')[0]
    assert ask(script, "localhost")[0] == 200
    assert ask(script, FOREIGN)[0] == 421


@pytest.mark.parametrize("name", ["localhost", FOREIGN])
@pytest.mark.parametrize("path", [each for each in PATHS if each != SOCKET])
def test_no_answer_may_be_shown_inside_another_page(ask, path, name) -> None:
    _, headers, _ = ask(path, name)
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("said", "header", "ours"),
    [
        ("", "localhost:8501", True),
        ("", "127.0.0.1", True),
        ("", "[::1]:8501", True),
        ("", "10.0.0.7:8501", False),
        ("10.0.0.7", "10.0.0.7:8501", True),
        ("10.0.0.7", "10.0.0.8", False),
        ("2001:db8::1", "[2001:DB8:0::1]:80", True),
        (ANYWHERE, "10.0.0.8", True),
        ("::", "[2001:db8::7]", True),
        (ANYWHERE, f"{FOREIGN}:8501", False),
        (ANYWHERE, "bench-box:8501", True),
        ("127.0.0.1", "bench-box", False),
        (f"127.0.0.1 {PROXY}", PROXY.upper(), True),
        (f"127.0.0.1 {PROXY}", f"x.{PROXY}", False),
        ("", "", False),
        ("", "localhost/", False),
        ("", "evil@localhost", False),
        ("", "localhost:x", False),
    ],
)
def test_names_and_addresses_are_compared_as_a_browser_means_them(
    monkeypatch, said, header, ours
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Bench-Box")
    assert read_hosts(said).allow(header) is ours


@pytest.mark.parametrize("name", ["https://a.org", "a.org:80", "a b", "*.a.org", ""])
def test_what_is_no_name_is_a_wrong_call(tmp_path, name) -> None:
    done = run_verb("--results", tmp_path, "--allow-host", name, of=verb.command, status=2)
    assert "expected a name without scheme and port" in done.output


def test_an_address_of_no_page_is_refused_and_names_the_pages(ask) -> None:
    """Of a real server: Streamlit itself gives its first page to every path."""
    status, _, body = ask("/nonsense", "localhost")
    assert status == 404
    assert b"No such page" in body
    assert b'href="/runs"' in body
