"""The record that a check leaves, as the other verbs read it."""

import json
from pathlib import Path

import pytest

from hybridwatch.records.store import read_run
from hybridwatch.server_check.record import build_record
from hybridwatch.server_check.result import Break, CheckResult
from tests.command_line import run_verb
from tests.unit.server_check.language_server import LanguageServer, served


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """The folder that gets the records."""
    monkeypatch.setenv("HYBRIDWATCH_RESULTS", str(tmp_path))
    return tmp_path


def call(*words: str, status: int | None = None):
    return run_verb(*words, status=status)


def check(server: LanguageServer, *words: str):
    """Check for as long as the last relation takes; give what was said and the record's path."""
    with served(server) as url:
        done = call("check", url, "--minutes", "0.02", "--json", *words)
    return done, json.loads(done.stdout).get("record")


def test_a_check_is_a_record_that_compare_and_gate_read():
    _, before = check(LanguageServer(), "--build", "mine")
    done, after = check(LanguageServer("cache is lost"), "--build", "mine")
    assert done.exit_code == 1
    run = read_run(Path(after))
    assert (run.scenario.id, run.builds[0].label) == ("check/played", "mine")
    assert (run.builds[0].release, run.testbed.id) == ("0.31.0", "127.0.0.1")
    call("gate", before, status=0)
    assert "contract.check_drift" in call("gate", after, status=1).output
    compared = call("compare", before, after)
    assert "contract.check_drift" in compared.output
    assert "egression" in compared.output
    assert "check/played" in call("records").output


def test_two_servers_are_one_record_with_two_sides():
    with served(LanguageServer()) as url, served(LanguageServer("one token")) as other:
        words = ("--minutes", "0.05", "--json", "--build", "old", "--build", "new")
        done = call("check", url, "--against", other, *words)
    assert done.exit_code == 1, done.output
    said = json.loads(done.stdout)
    assert said["against"] == other
    assert "tokens" in said["broke"]
    run = read_run(Path(said["record"]))
    assert [build.label for build in run.builds] == ["old", "new"]
    assert {trial.side for trial in run.trials} == {0, 1}
    assert "contract.check_tokens" in call("gate", said["record"], status=1).output


def test_no_record_where_none_is_wanted(results):
    done, record = check(LanguageServer(), "--no-record")
    assert done.exit_code == 0
    assert record is None
    assert list(results.iterdir()) == []


def test_what_was_not_asked_is_no_count_of_0():
    result = CheckResult("http://host:1", model="made", minutes=1.0)
    result.tallies["company"].checked = 3
    result.tallies["company"].add_break(Break("said", 1, 2))
    result.tallies["parts"].reason = "the server names no token ids"
    trial = build_record(result).trials[0]
    assert [(one.metric, one.values) for one in trial.samples] == [("contract.check_company", (1,))]


def test_a_server_that_went_away_is_a_failed_trial():
    result = CheckResult("http://host:1", model="made", stopped="http://host:1: gone")
    result.tallies["company"].checked = 3
    failure = build_record(result).trials[0].failure
    assert failure is not None
    assert failure.reason == "http://host:1: gone"
