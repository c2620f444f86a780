"""The verb: its exit status, its JSON, what it says, and what it keeps to itself."""

import json

import pytest

from hybridwatch.server_check.result import RELATIONS, Break, CheckResult
from hybridwatch.server_check.screen import write_result
from tests.command_line import run_verb
from tests.unit.server_check.language_server import LanguageServer, served

SHORT = ("--minutes", "0.02")  # the last relation is asked whatever the time


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """The folder that gets the records."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))
    return tmp_path


def call(server: LanguageServer, *words: str):
    with served(server) as url:
        return run_verb("check", url, *SHORT, *words)


def test_a_right_server_gives_0_and_every_relation_as_json():
    done = call(LanguageServer(), "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["schema_version"] == 1
    assert [one["name"] for one in said["relations"]] == list(RELATIONS)
    assert {one["outcome"] for one in said["relations"]} <= {"held", "not asked"}
    assert (said["model"], said["broke"], said["errors"]) == ("played", [], {})
    assert said["margin_nats"] == 0.001
    assert "sent: about 0.02 min, at most 33 requests at a time" in done.stderr


def test_a_break_gives_1():
    done = call(LanguageServer("cache is lost"))
    assert done.exit_code == 1
    assert "drift broke: cache use did not come back" in done.stdout


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "ftp://127.0.0.1", "http://me:hunter2@host"])
def test_a_server_that_cannot_be_asked_gives_2(url):
    assert "hunter2" not in run_verb("check", url, *SHORT, status=2).output


def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("HYBRIDWATCH_API_KEY", "a-secret")
    server = LanguageServer("cache is lost", key="a-secret")
    done = call(server, "--json")
    assert done.exit_code == 1
    assert "a-secret" not in done.output
    monkeypatch.delenv("HYBRIDWATCH_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert call(server).exit_code == 2


def test_the_screen_shows_a_break_with_its_requests_and_what_was_not_asked():
    result = CheckResult("http://host", model="model", margin=0.001, requests=7)
    result.errors["429"] = 2
    company = result.tallies["company"]
    company.checked = 4
    company.add_break(Break("token 3 is 'b' instead of 'a'", "a", "b", ("curl -s one",)))
    result.tallies["parts"].reason = "the server names no token ids"
    lines = "\n".join(write_result(result))
    assert "company     broke" in lines
    assert "company broke: token 3 is 'b' instead of 'a'\n  curl -s one" in lines
    assert "parts    not asked        one prompt" not in lines
    assert "the server names no token ids" in lines
    assert "no wrong answers: 2 x 429" in lines
    assert lines.endswith("broke: company")
