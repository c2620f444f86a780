"""Who may look: the password, the login, and what stops the start."""

import asyncio
import base64
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import middleware as door
import pytest
from streamlit.testing.v1 import AppTest

from hybridwatch.cli import dashboard as verb
from hybridwatch.orchestration.nightly.access import (
    LOGIN,
    PASSWORD,
    PEOPLE,
    AccessError,
    NightlyAccess,
    is_loopback,
    read_access,
)
from tests.command_line import run_verb
from tests.dashboard.live import APP, Text, html_of, said_by, turn_to, whole_app

SECRET: Final = "correct horse battery"  # noqa: S105 (of these tests)
ANYWHERE: Final = "0.0.0.0"  # noqa: S104 (nothing is bound)
AUTH: Final = """[auth]
redirect_uri = "http://localhost:8501/oauth2callback"
cookie_secret = "x"
client_id = "x"
client_secret = "x"
server_metadata_url = "https://example.org/.well-known/openid-configuration"
"""
ADA: Final = {"is_logged_in": True, "name": "Ada", "email": "Ada@Example.org"}


def basic(password: str, name: str = "anybody") -> bytes:
    return b"Basic " + base64.b64encode(f"{name}:{password}".encode())


@pytest.fixture
def knock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], list[float]]]:
    """Sends one request to the door; gives what came back and how long the door waited."""
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("middleware.asyncio.sleep", wait)

    def knocked(kind: str, authorization: bytes | None) -> tuple[list[Any], list[float]]:
        sent: list[Any] = []

        async def behind(*_: Any) -> None:
            sent.append("inside")

        async def receive() -> Any:
            raise AssertionError("nothing is read from who was not let in")

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [] if authorization is None else [(b"authorization", authorization)]
        guarded = door.Password(behind, SECRET)
        asyncio.run(guarded({"type": kind, "headers": headers}, receive, send))
        return sent, list(waits)

    return knocked


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("name", ["anybody", "", "Ada"])
def test_the_password_opens_whatever_the_name(kind, name, knock) -> None:
    assert knock(kind, basic(SECRET, name)) == (["inside"], [])


def test_the_server_itself_may_start(knock) -> None:
    assert knock("lifespan", None) == (["inside"], [])


def test_a_browser_is_asked_for_the_password_at_once(knock) -> None:
    (start, body), waits = knock("http", None)
    assert start["status"] == 401
    assert dict(start["headers"])[b"www-authenticate"].startswith(b"Basic realm=")
    assert int(dict(start["headers"])[b"content-length"]) == len(body["body"])
    assert waits == []


@pytest.mark.parametrize(
    "wrong",
    [
        basic(SECRET[:-1]),
        basic(SECRET + "x"),
        basic(""),
        b"Basic " + base64.b64encode(SECRET.encode()),  # without a name and its colon
        b"Basic",
        b"Basic \xff\xfe",
        b"Basic not base64!",
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_wrong_password_waits_and_stays_outside(kind, wrong, knock) -> None:
    sent, waits = knock(kind, wrong)
    assert "inside" not in sent
    assert waits == [1.0]


def test_a_socket_without_the_password_is_closed(knock) -> None:
    assert knock("websocket", None)[0] == [{"type": "websocket.close", "code": 1008}]


def test_another_scheme_is_no_password(knock) -> None:
    sent, _ = knock("http", b"Bearer " + SECRET.encode())
    assert sent[0]["status"] == 401


@pytest.fixture
def open_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_later: None
) -> Callable[[Any], AppTest]:
    """Opens the dashboard over an empty store as somebody."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))

    def opened(user: dict[str, Any] | None) -> AppTest:
        page = whole_app()
        if user is not None:
            page.user = user
        page.run()
        assert not page.exception
        return page

    return opened


def shows_records(page: AppTest) -> bool:
    return "make run" in said_by(page)


def test_without_a_login_everybody_may_look(open_app) -> None:
    page = open_app(None)
    assert shows_records(page)
    assert not page.sidebar.button


@pytest.mark.parametrize("page_name", ["", "alerts"])
def test_who_is_not_logged_in_sees_a_button_and_nothing_else(open_app, page_name) -> None:
    page = open_app({"is_logged_in": False})
    if page_name:
        turn_to(page, page_name)
        page.run()
    assert [button.label for button in page.button] == ["Log in"]
    assert Text(html_of(page)).text.strip() == ""  # the style alone
    assert not shows_records(page)


def test_who_is_logged_in_looks_is_named_and_can_log_out(open_app) -> None:
    page = open_app(ADA)
    assert shows_records(page)
    assert page.sidebar.text[0].value == "Logged in as Ada"
    page.sidebar.button[0].click().run()
    assert not shows_records(page)


def test_a_login_that_was_there_at_the_start_stays_asked_for(open_app, monkeypatch) -> None:
    monkeypatch.setenv(LOGIN, "1")
    assert not shows_records(open_app(None))
    assert shows_records(open_app(ADA))


@pytest.mark.parametrize(
    ("people", "user", "may"),
    [
        ("ada@example.org", {}, True),
        ("@example.org", {}, True),
        ("ben@example.org, @example.org", {"email_verified": True}, True),
        ("ben@example.org", {}, False),
        ("@ample.org example.org", {}, False),
        ("@example.org", {"email_verified": False}, False),
        ("@example.org", {"email": ""}, False),
        ("@example.org", {"email": "ada@example.org@elsewhere.net"}, False),
        ("", {}, False),
    ],
)
def test_only_who_is_expected_may_look(open_app, monkeypatch, people, user, may) -> None:
    monkeypatch.setenv(PEOPLE, people)
    page = open_app(ADA | user)
    assert shows_records(page) is may
    if not may:
        assert "not among those who may look" in page.main.text[-1].value
        assert [button.label for button in page.button] == ["Log out"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dashboard's folder with a login, and no other home."""
    path = tmp_path / "dashboard" / ".streamlit" / "secrets.toml"
    path.parent.mkdir(parents=True)
    path.write_text(AUTH)
    return tmp_path / "dashboard"


@pytest.fixture
def _authlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())


@pytest.mark.usefixtures("_authlib")
def test_what_is_set_up_is_found(folder: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert read_access(nowhere, nowhere, {}) == NightlyAccess(password=False, login=False)
    assert read_access(folder, nowhere, {}) == NightlyAccess(password=False, login=True)
    assert read_access(nowhere, folder, {PEOPLE: "@a.org"}) == NightlyAccess(
        password=False, login=True
    )
    assert read_access(nowhere, nowhere, {PASSWORD: SECRET}) == NightlyAccess(
        password=True, login=False
    )


@pytest.mark.usefixtures("_authlib")
@pytest.mark.parametrize(
    ("secrets", "told"),
    [
        ("[auth", "cannot be read"),
        ("[auth]\n", "lacks client_id, client_secret, cookie_secret"),
        ("auth = true\n", "lacks client_id"),
        (AUTH.replace('client_secret = "x"', ""), r"\[auth\] lacks client_secret$"),
        (AUTH.replace('cookie_secret = "x"', 'cookie_secret = ""'), "lacks cookie_secret$"),
    ],
)
def test_a_login_that_would_not_hold_stops_the_start(folder, tmp_path, secrets, told) -> None:
    (folder / ".streamlit" / "secrets.toml").write_text(secrets)
    with pytest.raises(AccessError, match=told):
        read_access(folder, tmp_path, {})


def test_a_login_without_its_library_stops_the_start(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(AccessError, match=r"pip install 'streamlit\[auth\]'"):
        read_access(folder, tmp_path, {})


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({PASSWORD: ""}, "expected at least 12 characters, found 0"),
        ({PASSWORD: "short"}, "found 5"),
        ({PEOPLE: "@a.org"}, "no login is set up"),
    ],
)
def test_what_keeps_nobody_out_stops_the_start(tmp_path, environment, told) -> None:
    with pytest.raises(AccessError, match=told):
        read_access(tmp_path, tmp_path, environment)


@pytest.mark.parametrize(
    ("host", "held"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("localhost", True),
        (ANYWHERE, False),
        ("::", False),
        ("192.168.1.7", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_what_nobody_else_reaches(host: str, held: bool) -> None:
    assert is_loopback(host) is held


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, Any]]:
    """Starts the verb as far as the server; gives what it printed, and the server's words."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)

    def started(*words: str) -> tuple[str, Any]:
        seen: list[Any] = []
        monkeypatch.setattr(os, "execve", lambda *told: seen.append(told))
        outcome = run_verb("--results", tmp_path, *words, of=verb.command)
        assert outcome.exception is None, outcome.output
        return outcome.output, seen[0]

    return started


def test_an_open_door_is_warned_of(start) -> None:
    said, _ = start("--host", ANYWHERE)
    assert "warning: everyone who can reach 0.0.0.0:8501 sees every record" in said
    assert PASSWORD in said
    assert "warning" not in start()[0]


def test_a_password_goes_to_the_server_unseen(start, monkeypatch) -> None:
    assert "server.py" in start()[1][1]
    monkeypatch.setenv(PASSWORD, SECRET)
    said, (_, words, environment) = start("--host", ANYWHERE)
    assert "warning" not in said
    assert SECRET not in " ".join(words)  # which every user of the machine can list
    assert environment[LOGIN] == "0"
    assert (APP.with_name("server.py")).is_file()
