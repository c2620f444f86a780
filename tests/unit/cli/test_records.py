"""``hybridwatch records``: which runs there are, and which of them are wanted."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from click.testing import CliRunner, Result

from hybridwatch.cli.main import cli
from hybridwatch.records.store import list_records, write_run
from tests.builders import BASELINE, NEWER, a_run
from tests.store_builders import as_version_1

GOOD = {"contract.padded_rows_prefilling": (0.0,)}
TWO = (GOOD, GOOD)
RUNS = {
    "aaaaaaaa": a_run(GOOD),
    "bbbbbbbb": a_run(*TWO),
    "cccccccc": a_run(*TWO, builds=(BASELINE, NEWER)),
    "dddddddd": a_run(*TWO, builds=(BASELINE, BASELINE)),
}


@pytest.fixture
def call(tmp_path):
    """List a store of four runs, a day between them; the last is of another scenario."""
    for day, (run_id, run) in enumerate(RUNS.items()):
        name = "gpu/other" if run_id == "dddddddd" else run.scenario.id
        scenario = replace(run.scenario, id=name)
        when = run.started_at + timedelta(days=day)
        write_run(tmp_path, replace(run, id=run_id, started_at=when, scenario=scenario))

    def ask(*words: str) -> Result:
        return CliRunner().invoke(
            cli, ["records", *words, "--results", str(tmp_path)], env={"COLUMNS": "80"}
        )

    return ask


def ids(answer: Result) -> list[str]:
    return [one["run_id"] for one in json.loads(answer.stdout)["records"]]


def test_the_newest_comes_first_in_a_line_each(call) -> None:
    answer = call()
    assert answer.exit_code == 0
    lines = [line.split() for line in answer.output.splitlines()[2:]]
    assert [line[0] for line in lines] == ["dddddddd", "cccccccc", "bbbbbbbb", "aaaaaaaa"]
    assert [" ".join(line[4:]) for line in lines] == [
        "A/A, cpu-0.27.1",
        "cpu-0.27.1 \N{RIGHTWARDS ARROW} cpu-0.28.0",
        "control, cpu-0.27.1",
        "cpu-0.27.1",
    ]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--scenario", "gpu"), ["dddddddd"]),
        (("--scenario", "smoke/padded-graph-rows"), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]),
        (("--scenario", "smoke/padded"), []),
        (("--build", "cpu-0.28"), ["cccccccc"]),
        (("--role", "known-bad"), ["bbbbbbbb"]),
        (("--role", "a-a"), ["dddddddd"]),
        (("--role", "alone"), ["aaaaaaaa"]),
        (("--role", "comparison", "--testbed", "epyc"), ["cccccccc"]),
        (("--testbed", "xeon"), []),
    ],
)
def test_only_what_is_wanted_is_listed(call, words, wanted) -> None:
    assert ids(call("--json", *words)) == wanted


def test_older_ones_are_there_for_the_asking(call, monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.cli.results._SHOWN", 2)
    assert call().output.splitlines()[-1] == "Older ones: --all"
    short = call("--json")
    assert (ids(short), json.loads(short.stdout)["more"]) == (["dddddddd", "cccccccc"], True)
    assert len(ids(call("--all", "--json"))) == 4


def test_a_broken_record_is_named_and_hides_no_other(call, tmp_path) -> None:
    folder = next((tmp_path / "records").iterdir())
    (folder / "20270101T000000Z-x-eeeeeeee.json").write_text("{")
    answer = call("--json")
    assert answer.exit_code == 0
    assert len(ids(answer)) == 4
    (broken,) = json.loads(answer.stdout)["unreadable"]
    assert broken["record"].endswith("eeeeeeee.json")
    assert "eeeeeeee.json: " in call().stderr


def test_a_record_without_a_digest_says_so(call, tmp_path) -> None:
    assert "no digest" not in call().output
    first = list_records(tmp_path)[0]
    stated = {one["run_id"]: one["sha256"] for one in json.loads(call("--json").stdout)["records"]}
    assert stated["aaaaaaaa"] == json.loads(first.read_bytes())["sha256"]
    as_version_1(first)
    assert json.loads(call("--json").stdout)["records"][-1]["sha256"] is None
    assert rows(call())[-1] == "no digest, so damage may go unseen: aaaaaaaa"


def rows(answer: Result) -> list[str]:
    return [line.rstrip() for line in answer.output.splitlines()[2:]]


def test_a_folder_that_is_not_there_is_a_wrong_call(tmp_path) -> None:
    answer = CliRunner().invoke(cli, ["records", "--results", str(tmp_path / "x")])
    assert answer.exit_code == 2
    assert "no such folder" in answer.stderr
