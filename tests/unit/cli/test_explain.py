"""explain: a verdict is had again from its records, or what differs is said."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.analysis import rank, signed_rank
from hybridwatch.analysis.replay import RULES_VERSION
from hybridwatch.records.store import list_records, list_verdicts, read_verdict, write_run
from hybridwatch.records.store.verdicts import encode_verdict
from tests.builders import Trials, a_run, noisy
from tests.command_line import run_verb
from tests.store_builders import as_version_1

PADDED = "contract.padded_rows_prefilling"
GOOD: dict[str, Trials] = {
    PADDED: (0.0,) * 3,
    "accuracy.recall": "1" * 190 + "0" * 10,
    "ttft": noisy(0.0413, 7, 0.01, 1),
    "host_syncs_per_step": noisy(3.0, 5, 0.01, 2),
}
BAD: dict[str, Trials] = {
    PADDED: (4.0,) * 3,
    "accuracy.recall": "1" * 150 + "0" * 50,
    "ttft": noisy(0.0513, 7, 0.01, 3),
    "host_syncs_per_step": noisy(3.0, 5, 0.01, 4),
}


@pytest.fixture
def saved(call, tmp_path) -> Path:
    """One verdict, stored, on one run of two builds."""
    write_run(tmp_path, a_run(GOOD, BAD))
    call("compare", "latest", "--save", status=1)
    [path] = list_verdicts(tmp_path)
    return path


def changed(path: Path, change) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def from_before_versions(path: Path) -> None:
    """Name a digest of the judging code in a stored verdict, as there was before RULES_VERSION."""
    verdict, _ = read_verdict(path)
    tools = {name: told for name, told in verdict.tools.items() if name != "rules"}
    older = verdict.model_copy(update={"tools": tools | {"analysis": "0123456789abcdef" * 4}})
    path.write_bytes(encode_verdict(older)[0])


def test_compare_says_where_the_verdict_is_and_what_to_do_next(call, tmp_path) -> None:
    write_run(tmp_path, a_run(GOOD, BAD))
    call("compare", "latest")
    assert list_verdicts(tmp_path) == [], "nothing is stored unasked"
    answer = call("compare", "latest", "--save")
    [path] = list_verdicts(tmp_path)
    assert answer.output.endswith(f"verdict: {path}\nnext:    hybridwatch explain {path}\n")
    told = call("compare", "latest", "--save", "--json")
    assert json.loads(told.stdout)["bad_news"] is True
    assert str(path) in told.stderr
    assert list_verdicts(tmp_path) == [path]


@pytest.mark.parametrize("word", ["latest", "1f0a9c3e"])
def test_an_untouched_verdict_is_had_again(call, saved, word) -> None:
    answer = call("explain", word, status=0)
    assert "the same, bit for bit: 5 comparisons" in " ".join(answer.output.split())
    assert "Changed since" not in answer.output


def test_by_itself_it_is_short_and_begins_with_the_bad_news(call, saved) -> None:
    short = call("explain", "latest").output.splitlines()
    assert len(short) < 30
    first = next(line for line in short if PADDED in line)
    assert first.startswith("\N{HEAVY MULTIPLICATION X}")
    assert "baseline's counts 0" in " ".join(short)
    assert len(call("explain", "latest", "--all").output.splitlines()) > 2 * len(short)


def test_it_is_had_again_where_the_results_were_moved_to(saved, tmp_path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    for part in ("records", "verdicts"):
        (tmp_path / part).rename(moved / part)
    path = moved / saved.relative_to(tmp_path)
    run_verb("explain", path, status=0)


def test_two_runs_are_had_again_with_the_noise_learned_then(call, tmp_path) -> None:
    for at in range(24):
        sides: dict[str, Trials] = {"ttft": noisy(0.04 * (1 + 0.03 * (at % 2)), 7, 0.01, at)}
        write_run(tmp_path, replace(a_run(sides), id=f"{at:08d}"))
    assert call("compare", "00000000", "00000001", "--save").exit_code in {0, 1}
    [path] = list_verdicts(tmp_path)
    noise = json.loads(path.read_text(encoding="utf-8"))["parameters"]["noise"]
    assert noise["ttft median"] > 0.01
    for record in list_records(tmp_path)[2:]:
        record.unlink()  # what the noise was learned from is not needed any more
    assert "learned noise" in call("explain", "latest", "ttft", status=0).output


def test_one_bit_of_the_stored_verdict_is_found(call, saved) -> None:
    def nudge(content) -> None:
        comparison = content["report"]["comparisons"][1]
        comparison["p_value"] = float(np.nextafter(comparison["p_value"], 1))

    changed(saved, nudge)
    answer = call("explain", str(saved), status=1)
    said = " ".join(answer.output.split())
    assert "accuracy.recall mean p_value: stored" in said
    assert "was altered after it was written" in said
    assert "differs in 1 place; a file was altered" in said


def test_a_field_taken_out_of_the_stored_verdict_is_found(call, saved) -> None:
    changed(saved, lambda content: content["report"].pop("bad_news"))
    answer = call("explain", str(saved), status=1)
    said = " ".join(answer.output.split())
    assert "was altered after it was written" in said
    assert "the same numbers (5 comparisons), but not from what was judged then" in said


def slower(content) -> None:
    for trial in content["trials"]:
        for sample in trial["samples"]:
            if sample["metric"] == "ttft" and trial["side"] == 1:
                sample["values"] = [2 * value for value in sample["values"]]


def test_a_changed_record_of_version_1_is_said_and_what_follows_from_it(call, tmp_path) -> None:
    record = as_version_1(write_run(tmp_path, a_run(GOOD, BAD)))
    call("compare", "latest", "--save", status=1)
    changed(record, slower)
    answer = call("explain", "latest", status=1)
    said = " ".join(answer.output.split())
    assert f"{record}wasalteredafteritwasjudged" in said.replace(" ", "")
    assert "ttft median effect: stored" in said


@pytest.mark.parametrize("verb", ["explain", "compare", "gate", "export"])
def test_a_changed_record_is_refused_by_every_verb(call, saved, tmp_path, verb) -> None:
    [record] = list_records(tmp_path)
    changed(record, slower)
    answer = call(verb, *(("--to", "csv") if verb == "export" else ()), "latest", status=2)
    assert answer.stderr.startswith(f"hybridwatch: {record}: sha256: expected ")
    assert answer.stderr.count("\n") == 1


def test_another_seed_is_found_and_named(call, saved, monkeypatch) -> None:
    monkeypatch.setattr(signed_rank, "SEED", signed_rank.SEED + 1)
    monkeypatch.setattr("hybridwatch.history.judge.present_tools", lambda: {"rules": "other"})
    answer = call("explain", str(saved), status=1)
    said = " ".join(answer.output.split())
    assert "parameters.bootstrap.paired.seed: stored 20260402, again 20260403" in said
    assert re.search(r"ttft (median|p99) interval\.(low|high): stored", said)
    assert "what computes it has changed" in said
    assert re.search(rf"rules: {RULES_VERSION} -> other", said)


def test_a_verdict_from_before_rules_had_a_version_is_had_again(call, saved, monkeypatch) -> None:
    from_before_versions(saved)
    answer = call("explain", str(saved), status=0)
    said = " ".join(answer.output.split())
    assert f"rules: unnumbered (code 0123456789ab) -> {RULES_VERSION}" in said
    assert "the same, bit for bit" in said
    # By such rules it may also differ.
    monkeypatch.setattr(rank, "SEED", rank.SEED + 1)
    answer = call("explain", str(saved), status=1)
    said = " ".join(answer.output.split())
    assert "what computes it has changed" in said
    assert "defect" not in said


def test_a_difference_that_nothing_explains_is_called_a_defect(call, saved, monkeypatch) -> None:
    monkeypatch.setattr(rank, "SEED", rank.SEED + 1)
    said = " ".join(call("explain", str(saved)).output.split())
    assert "nothing that it hangs on has changed: please report this as a defect" in said


def test_json_has_all_of_it(call, saved) -> None:
    told = json.loads(call("explain", "latest", "ttft p99", "--json").stdout)
    assert told["same"] is True
    assert (told["deviations"], told["alterations"], told["changes"]) == ([], [], [])
    [explained] = told["explanations"]
    assert (explained["metric"], explained["statistic"]) == ("ttft", "p99")
    assert len(told["report"]["comparisons"]) == 5


def test_a_metric_is_shown_alone(call, saved) -> None:
    said = call("explain", "latest", "ttft").output
    assert "ttft median" in said
    assert "ttft p99" in said
    assert "accuracy" not in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("latest", "tpot"), "tpot: expected a metric of this verdict, which has contract."),
        (("ffffffff",), "found none among 1"),
        (("no/such.json",), "no/such.json: no such verdict"),
    ],
)
def test_wrong_calls_are_one_line_and_status_2(call, saved, words, told) -> None:
    answer = call("explain", *words)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_record_is_no_verdict_and_a_missing_record_is_named(call, saved, tmp_path) -> None:
    [record] = list_records(tmp_path)
    assert "not a stored verdict" in call("explain", str(record)).stderr
    record.unlink()
    answer = call("explain", str(saved), status=2)
    assert f"{record}: the record of run 1f0a9c3e is not there" in answer.stderr


def test_damaged_answers_are_one_line(call, saved, tmp_path) -> None:
    [bulk] = tmp_path.rglob("*.bulk.jsonl.gz")
    bulk.write_bytes(bulk.read_bytes()[:-1])
    assert "sha256: expected" in call("explain", str(saved), status=2).stderr
