"""An address of no page is told so, under its own address."""

import asyncio
from typing import Any

import pytest
from middleware import KnownPages

from hybridwatch.pages.screens import SCREENS

FIRST_PAGE = b"<title>Streamlit</title>"


async def behind(scope: Any, receive: Any, send: Any) -> None:
    """As Streamlit: files are there or not; to any other path its first page is given."""
    kind = b"text/javascript" if scope["path"].endswith(".js") else b"text/html; charset=utf-8"
    headers = [(b"content-type", kind)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": FIRST_PAGE, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def answer(path: str, root: str = "") -> tuple[int, str]:
    """Status and text of what is served under a path."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "root_path": root, "headers": []}
    asyncio.run(KnownPages(behind)(scope, None, send))  # type: ignore[arg-type]
    assert [one["type"] for one in sent].count("http.response.start") == 1
    return sent[0]["status"], b"".join(one["body"] for one in sent[1:]).decode()


@pytest.mark.parametrize(
    "path", ["/", *(f"/{name}" for name in SCREENS), "/run/", "/static/x.js", "/media/1.html"]
)
def test_pages_and_files_that_there_are_are_served(path: str) -> None:
    assert answer(path) == (200, FIRST_PAGE.decode())


@pytest.mark.parametrize("path", ["/nonsense", "/runs/1f0a9c3e", "/Overview"])
def test_an_address_of_no_page_names_what_was_asked_for_and_what_there_is(path: str) -> None:
    status, text = answer(path)
    assert status == 404
    assert FIRST_PAGE.decode() not in text
    assert "No such page" in text
    assert f"The address asks for {path}, which is none of these:" in text
    for name in SCREENS:
        assert f'href="/{name if name != "overview" else ""}"' in text
    assert "Written" not in text, "it is no file"


def test_below_the_path_of_a_proxy_links_stay_below_it() -> None:
    assert answer("/bench/runs", "/bench")[0] == 200
    status, text = answer("/bench/nonsense", "/bench")
    assert status == 404
    assert 'href="/bench/runs"' in text


def test_what_was_asked_for_cannot_become_markup() -> None:
    text = answer("/<script>alert(1)</script>")[1]
    assert "<script>alert(1)" not in text
