"""``hybridwatch records`` and ``page``: what is stored, listed and drawn."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result

from hybridwatch.errors import RecordError
from hybridwatch.pages.screens import overview
from hybridwatch.records.store import list_records, write_run
from tests.builders import BASELINE, NEWER, a_run
from tests.command_line import run_verb
from tests.store_builders import REGRESSED, as_version_1
from tests.store_builders import run as whole_run

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

    def ask(*words: str, status: int | None = None) -> Result:
        return run_verb(
            "records", *words, "--results", tmp_path, env={"COLUMNS": "80"}, status=status
        )

    return ask


def ids(answer: Result) -> list[str]:
    return [one["run_id"] for one in json.loads(answer.stdout)["records"]]


def test_the_newest_comes_first_in_a_line_each(call) -> None:
    answer = call(status=0)
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
    answer = call("--json", status=0)
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
    assert "no such folder" in run_verb("records", "--results", tmp_path / "x", status=2).stderr


def test_a_view_is_written_and_named(tmp_path: Path) -> None:
    write_run(tmp_path, whole_run(REGRESSED))
    out = tmp_path / "run.html"
    words = ["page", "run", "--results", str(tmp_path), "--out", str(out)]
    run_verb(*words, "--query", f"run={whole_run(REGRESSED).id}", status=0)
    written = out.read_text(encoding="utf-8")
    assert "contract.padded_rows_prefilling" in written
    assert f"hybridwatch page run --query run={whole_run(REGRESSED).id}" in written


def test_a_query_that_cannot_be_answered_is_bad_news(tmp_path: Path) -> None:
    write_run(tmp_path, whole_run(REGRESSED))
    out = tmp_path / "run.html"
    words = ["page", "run", "--results", str(tmp_path), "--out", str(out), "--query", "run=0"]
    outcome = run_verb(*words, status=1)
    assert "The link names run '0', which is not in this store." in outcome.output
    assert "which is not in this store" in out.read_text(encoding="utf-8")


def test_what_cannot_be_shown_is_an_error_and_no_file(tmp_path: Path, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise RecordError("baselines.toml: expected TOML")

    monkeypatch.setattr(overview, "show", fail)
    out = tmp_path / "x.html"
    words = ["page", "overview", "--results", str(tmp_path), "--out", str(out)]
    outcome = run_verb(*words)
    assert (outcome.exit_code, out.exists()) == (2, False)
    assert "hybridwatch: baselines.toml: expected TOML" in outcome.output


def test_what_cannot_be_written_or_is_no_screen_is_a_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("a file")
    nowhere = ["--results", str(tmp_path), "--out", str(tmp_path / "no" / "x.html")]
    assert "cannot be written" in run_verb("page", "runs", *nowhere, status=2).output
    run_verb("page", "nonsense", *nowhere, status=2)


def test_a_store_without_records_is_not_the_querys_fault(tmp_path: Path) -> None:
    words = ["page", "run", "--query", "run=1f0a9c3e", "--out", str(tmp_path / "x.html")]
    nowhere = run_verb(*words, "--results", tmp_path / "nowhere", status=2)
    assert "nowhere: no such folder" in nowhere.output
    assert not (tmp_path / "x.html").exists()
    empty = run_verb(*words, "--results", tmp_path, status=1)
    assert "does not know" not in empty.output
    assert "no run to show yet" in empty.output
