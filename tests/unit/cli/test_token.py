"""``hybridwatch token``: made once, listed without secrets, taken back."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hybridwatch.cli.main import cli


def call(results: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["token", *words, "--results", str(results)])


def listed(results: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(call(results, "list", "--json").stdout)["tokens"]
    return found


def test_a_token_is_printed_once_listed_and_revoked(tmp_path: Path) -> None:
    assert listed(tmp_path) == []
    made = call(
        tmp_path, "make", "ci [bold]", "--scope", "ingest", "--scope", "read", "--days", "9"
    )
    assert made.exit_code == 0
    assert made.stdout.startswith("hw_")
    assert len(made.stdout.split()) == 1
    (one,) = listed(tmp_path)
    assert (one["name"], one["scopes"], one["valid"]) == ("ci [bold]", ["ingest", "read"], True)
    assert one["expires_at"] is not None
    shown = call(tmp_path, "list").output
    assert "ci [bold]" in shown
    assert made.stdout.strip() not in shown
    assert call(tmp_path, "revoke", "ci [bold]").exit_code == 0
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
    refused = call(tmp_path, *words)
    assert refused.exit_code == 2
    assert said in refused.output


def test_it_needs_a_folder(tmp_path: Path) -> None:
    assert call(tmp_path / "none", "list").exit_code == 2
