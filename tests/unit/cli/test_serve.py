"""``hybridwatch serve`` in a process of its own, and the tokens that it asks for."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import Result

from tests.command_line import run_verb
from tests.unit.database.stores import add
from tests.waiting import LIMIT_S, own_port, wait_until

PROGRAM = (sys.executable, "-c", "from hybridwatch.cli.main import main; main()")


def once_up(address: str, process: subprocess.Popen[bytes]) -> httpx.Response:
    def answer() -> httpx.Response | None:
        assert process.poll() is None, "the server has ended"
        try:
            return httpx.get(address, timeout=LIMIT_S)
        except httpx.ConnectError:
            return None

    return wait_until(answer, address)


def test_it_answers_on_loopback_under_a_name_that_was_given(tmp_path: Path) -> None:
    add(tmp_path, 1)
    port = own_port()
    words = ["serve", "--api", "--results", str(tmp_path), "--port", str(port)]
    with subprocess.Popen([*PROGRAM, *words, "--allow-host", "bench.example"]) as process:
        try:
            address = f"http://127.0.0.1:{port}/v1/runs"
            assert len(once_up(address, process).json()["items"]) == 1
            for name, status in (("bench.example", 200), ("evil.example", 421)):
                assert httpx.get(address, headers={"host": name}).status_code == status
        finally:
            process.terminate()


@pytest.mark.parametrize("words", [["--require-token"], ["--host", "0.0.0.0"]])  # noqa: S104
def test_reading_needs_a_token_where_it_is_wanted_or_others_reach_it(tmp_path, words) -> None:
    add(tmp_path, 1)
    port = own_port()
    all_words = ["serve", "--api", "--results", str(tmp_path), "--port", str(port), *words]
    with subprocess.Popen([*PROGRAM, *all_words]) as process:
        try:
            assert once_up(f"http://127.0.0.1:{port}/v1/runs", process).status_code == 401
        finally:
            process.terminate()


def test_it_needs_a_folder_and_to_be_told_what_to_serve(tmp_path: Path) -> None:
    nowhere = run_verb("serve", "--api", "--results", tmp_path / "none", status=2)
    assert "none: no such folder" in nowhere.output
    assert "--api" in run_verb("serve", "--results", tmp_path, status=2).output


def call(results: Path, *words: str, status: int | None = None) -> Result:
    return run_verb("token", *words, "--results", results, status=status)


def listed(results: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(call(results, "list", "--json").stdout)["tokens"]
    return found


def test_a_token_is_printed_once_listed_and_revoked(tmp_path: Path) -> None:
    assert listed(tmp_path) == []
    words = ("make", "ci [bold]", "--scope", "ingest", "--scope", "read", "--days", "9")
    made = call(tmp_path, *words, status=0)
    assert made.stdout.startswith("hw_")
    assert len(made.stdout.split()) == 1
    (one,) = listed(tmp_path)
    assert (one["name"], one["scopes"], one["valid"]) == ("ci [bold]", ["ingest", "read"], True)
    assert one["expires_at"] is not None
    shown = call(tmp_path, "list").output
    assert "ci [bold]" in shown
    assert made.stdout.strip() not in shown
    call(tmp_path, "revoke", "ci [bold]", status=0)
    assert [one["valid"] for one in listed(tmp_path)] == [False]
    assert "revoked" in call(tmp_path, "list").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["make", "ci"], "--scope"),
        (["make", "ci", "--scope", "all"], "'all' is not one of"),
        (["make", "ci", "--scope", "read", "--days", "0"], "--days"),
        (["revoke", "nobody"], "token nobody"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(tmp_path: Path, words: list[str], said: str) -> None:
    assert said in call(tmp_path, *words, status=2).output


def test_it_needs_a_folder(tmp_path: Path) -> None:
    call(tmp_path / "none", "list", status=2)
