"""compare, gate, comment: from record files to text and exit status."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.cli.main import main, verbs
from hybridwatch.errors import EngineError
from hybridwatch.records.store import write_run
from tests.broken_engines import dead_contender
from tests.builders import BASELINE, NEWER, RECENT, a_comparison, a_run, noisy
from tests.command_line import run_verb

PADDED = "contract.padded_rows_prefilling"
GOOD = {PADDED: (0.0,), "tpot": noisy(1.0, 7, 0.01)}
BAD = {PADDED: (4.0,), "tpot": noisy(1.0, 7, 0.01)}


@pytest.fixture
def stored(tmp_path):
    """Store a run and give the path of its record."""

    def store(*sides, run_id: str = "1f0a9c3e") -> str:
        run = replace(a_comparison(*sides), id=run_id, started_at=RECENT)
        return str(write_run(tmp_path, run))

    return store


def test_compare_of_one_record_says_it_all_and_ends_well(call, stored) -> None:
    assert "Equivalent: 2 comparisons" in call("compare", stored(GOOD, GOOD), status=0).output


@pytest.mark.parametrize("word", ["latest", "1f0a9c3e"])
def test_bad_news_is_status_1_by_every_name_of_a_run(call, stored, word) -> None:
    stored(GOOD, BAD)
    assert "regression" in call("compare", word, status=1).output


def test_a_gate_warns_of_what_is_not_sure_and_passes(call, stored) -> None:
    tasks = ("accuracy.chain", "accuracy.lookup", "accuracy.recall")
    right, wrong = "1" * 200, "0" * 5 + "1" * 195
    record = stored(dict.fromkeys(tasks, right), dict.fromkeys(tasks, wrong))
    found = "accuracy.chain -2.5 points (5 lost and none won of 200) and 2 more metrics"
    lost = f"Answers were lost: {found}"
    call("compare", record, status=1)
    answer = call("gate", record, status=0)
    assert answer.output.count(f"  warning: {lost}\n") == 1
    assert f"pass with 3 warnings: {lost}. " in answer.output
    told = json.loads(call("gate", record, "--json").stdout)
    assert (told["passed"], told["reasons"], len(told["warnings"])) == (True, [], 3)


def test_earlier_runs_in_the_results_folder_say_how_much_runs_differ(call, stored) -> None:
    levels = np.exp(np.random.default_rng(3).normal(0, 0.05, 24)).tolist()
    for number, level in enumerate(levels):
        stored({"tpot": noisy(level, 10, 0.002, number)}, run_id=f"{number:08x}")
    stored({"tpot": noisy(1.0, 10, 0.002, 50)}, run_id="aaaaaaaa")
    stored({"tpot": noisy(1.06, 10, 0.002, 51)}, run_id="bbbbbbbb")
    answer = call("compare", "aaaaaaaa", "bbbbbbbb", "--json")
    (found,) = json.loads(answer.stdout)["comparisons"]
    assert found["verdict"] == "inconclusive"
    assert found["relevance"] == 5 * found["noise"] > found["margin"]


def test_json_is_json_and_nothing_else(call, stored) -> None:
    answer = call("compare", stored(GOOD, BAD), "--json", status=1)
    told = json.loads(answer.stdout)
    assert told["bad_news"] is True
    assert told["comparisons"][0]["verdict"] == Verdict.REGRESSION.value


def test_two_records_are_baseline_and_contender(call, stored) -> None:
    old, new = stored(GOOD, run_id="aaaaaaaa"), stored(BAD, run_id="bbbbbbbb")
    call("compare", old, new, status=1)
    back = json.loads(call("compare", "bbbbbbbb", "aaaaaaaa", "--json").stdout)
    assert back["comparisons"][0]["verdict"] == Verdict.IMPROVEMENT.value
    assert back["baseline"]["run_id"] == "bbbbbbbb"


def test_a_side_of_a_record_of_two_is_chosen_by_its_number(call, stored) -> None:
    two = stored(GOOD, BAD, run_id="aaaaaaaa")
    call("gate", f"{two}#1", f"{two}#0", status=0)
    call("gate", "aaaaaaaa#0", "aaaaaaaa#1", status=1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("aaaaaaaa", "aaaaaaaa"), "add the side: #0 is cpu-0.27.1"),
        (("aaaaaaaa#7", "aaaaaaaa#0"), "expected 0 or 1 after #, found '7'"),
        (("a", "b", "c"), "expected one record or two, found 3"),
        (("no/such.json",), "no such record"),
    ],
)
@pytest.mark.parametrize("verb", ["compare", "gate", "comment"])
def test_wrong_calls_are_one_line_and_status_2(call, stored, verb, words, told) -> None:
    stored(GOOD, BAD, run_id="aaaaaaaa")
    answer = call(verb, *words, *(["--dry-run"] if verb == "comment" else []), status=2)
    assert answer.stdout == ""
    assert answer.stderr.startswith("hybridwatch: ")
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["compare", "gate", "comment"])
def test_times_of_one_side_alone_cannot_be_judged(call, stored, verb) -> None:
    stored({"ttft": (0.1, 0.2)}, run_id="aaaaaaaa")
    answer = call(verb, "aaaaaaaa", *(["--dry-run"] if verb == "comment" else []), status=2)
    assert "one side alone cannot be compared" in answer.stderr
    assert "pins no baseline for smoke/padded-graph-rows" in answer.stderr


@pytest.mark.parametrize("verb", ["compare", "explain", "gate"])
def test_where_nothing_was_measured_it_is_not_the_words_fault(call, tmp_path, verb) -> None:
    answer = call(verb, "latest", status=2)
    assert "yet" in answer.stderr
    assert "'latest'" not in answer.stderr
    elsewhere = run_verb(verb, "latest", "--results", tmp_path / "x")
    assert f"{tmp_path / 'x'}: no such folder" in elsewhere.stderr


def test_gate_tells_why(call, stored) -> None:
    answer = call("gate", stored(GOOD, BAD), status=1)
    assert f"  A contract broke: {PADDED} 0 -> 4\n" in answer.output
    assert f"      {PADDED}: regression, 0 -> 4, +4\n" in answer.output
    assert f"fail: A contract broke: {PADDED} 0 -> 4. The gate stops this.\n" in answer.output
    told = json.loads(call("gate", "latest", "--json").stdout)
    assert told["passed"] is False
    assert told["reasons"] == [f"{PADDED} value: regression"]


def test_a_gate_tells_a_dead_engine_in_one_line_with_the_end_of_its_log(call, tmp_path) -> None:
    write_run(tmp_path, replace(dead_contender(), builds=(BASELINE, NEWER)))
    answer = call("gate", "latest", status=1)
    _judged, first, *rest = answer.output.splitlines()
    assert first == (
        "  The engine died: CUDA error: an illegal memory access was encountered; "
        "all 12 metrics failed"
    )
    assert sum(line.startswith("      | ") for line in rest) == 5
    assert "ttft" not in answer.output


def test_the_json_of_compare_and_gate_speaks_of_causes(call, stored, tmp_path) -> None:
    write_run(tmp_path, replace(dead_contender(), builds=(BASELINE, NEWER)))
    told = json.loads(call("compare", "latest", "--json").stdout)
    (cause,) = told["causes"]
    assert (cause["area"], cause["better"], cause["action"]) == ("engine", False, "block")
    assert cause["failure"]["reason"].startswith("CUDA error: an illegal memory access")
    assert "CUDA error" in cause["failure"]["first"]["log_tail"]
    assert len(cause["parts"]) == len(told["comparisons"])
    assert json.loads(call("gate", "latest", "--json").stdout)["report"]["causes"] == told["causes"]


def test_a_stored_verdict_holds_no_words_about_causes(call, stored, tmp_path) -> None:
    """They may be said better one day, and a verdict has to be had again to the letter."""
    call("compare", stored(GOOD, BAD), "--save")
    (verdict,) = (tmp_path / "verdicts").rglob("*.json")
    assert "causes" not in json.loads(verdict.read_text())["report"]


def test_gate_passes(call, stored) -> None:
    answer = call("gate", stored(GOOD, GOOD))
    judged, said = answer.output.splitlines()
    assert (answer.exit_code, said.partition(":")[0]) == (0, "pass")
    assert judged == "  judged smoke/padded-graph-rows: 5 hours old, run 1f0a9c3e"


def test_a_dry_comment_prints_markdown_posts_nothing_and_says_when_there_would_be_none(
    call, stored
) -> None:
    record = stored(GOOD, BAD)
    assert call("comment", record, "--dry-run", status=0).stdout.startswith("**A contract broke: ")
    assert "or --dry-run to print only" in call("comment", record, status=2).stderr
    answer = call("comment", stored(GOOD, GOOD, run_id="2f0a9c3e"), "--dry-run")
    assert answer.stdout.startswith("**Equivalent")
    assert answer.stderr.startswith("no news")


@pytest.mark.parametrize("action", ["block", "warn", "watch"])
def test_a_gate_and_its_causes_do_what_the_policy_says(call, stored, own_policy, action) -> None:
    record = stored(GOOD, {**GOOD, "tpot": noisy(1.2, 7, 0.01)})
    words = ("gate", record, *own_policy(f'[[rule]]\nmetric = "*"\naction = "{action}"\n'))
    answer = call(*words)
    slower = "Slower: tpot +20"
    said = {"block": f"fail: {slower}", "warn": f"pass with 1 warning: {slower}", "watch": "pass: "}
    assert answer.exit_code == (1 if action == "block" else 0)
    assert said[action] in answer.output
    assert ("tpot median: regression" in answer.output) is (action != "watch")
    causes = json.loads(call(*words, "--json").stdout)["report"]["causes"]
    assert [(one["action"], one["failure"]) for one in causes] == [(action, None)] * bool(causes)
    assert bool(causes) is (action != "watch")


def test_a_margin_of_the_policy_is_the_gates_margin(call, stored, own_policy) -> None:
    record = stored(GOOD, {**GOOD, "tpot": noisy(1.06, 7, 0.01)})
    wide = own_policy('[[rule]]\nmetric = "tpot"\naction = "block"\nmargin = 0.2\n')
    call("gate", record, status=1)
    call("gate", record, *wide, status=0)
    answer = call("gate", record, *own_policy('[[rule]]\nmetric = "tpott"\naction = "block"\n'))
    assert answer.exit_code == 2
    assert "own.toml: rule[0].metric: no metric has this id" in answer.stderr


def test_a_gate_over_a_folder_wants_every_expected_scenario(call, stored, own_policy) -> None:
    rule = '[[rule]]\nmetric = "*"\naction = "block"\n'
    wide = own_policy('expected = ["smoke/padded-graph-rows", "smoke/dummy-run"]\n' + rule)
    stored(GOOD, BAD, run_id="aaaaaaaa")
    stored(GOOD, GOOD, run_id="bbbbbbbb")
    answer = call("gate", *wide, status=1)
    assert "  smoke/dummy-run: missing: there is no record of it" in answer.output
    assert PADDED not in answer.output, "the newest record of a scenario is the one that counts"
    told = json.loads(call("gate", *wide, "--json").stdout)
    assert [one["scenario"] for one in told["absent"]] == ["smoke/dummy-run"]
    assert (told["passed"], len(told["reports"])) == (False, 1)
    call("gate", *own_policy(), status=0)


def test_a_gate_over_a_folder_names_what_it_cannot_judge(call, stored, own_policy) -> None:
    empty = call("gate", *own_policy())
    said = "fail: Not comparable, so the gate stops this: nothing was measured.\n"
    assert (empty.exit_code, empty.output) == (1, said)
    record = Path(stored(GOOD))
    (record.parent / "20260301T120000Z-x-2222.json").write_text("{")
    answer = call("gate", *own_policy(), status=1)
    assert "of one build, so its times are not judged: 1f0a9c3e" in answer.output
    assert "20260301T120000Z-x-2222.json: cannot be read" in answer.output


def test_a_lost_file_of_answers_stops_its_scenario_and_hides_no_other(
    call, own_policy, tmp_path
) -> None:
    asked = a_run({"accuracy.recall": "1101"}, {"accuracy.recall": "1101"})
    record = write_run(tmp_path, replace(asked, started_at=RECENT))
    other = a_comparison(GOOD, BAD, started_at=RECENT)
    write_run(tmp_path, replace(other, id="aaaaaaaa", scenario=replace(other.scenario, id="x/y")))
    record.with_name(f"{record.stem}.bulk.jsonl.gz").unlink()
    answer = call("gate", *own_policy(), status=1)
    assert f"{asked.scenario.id} on {asked.testbed.id}: cannot be read: " in answer.output
    assert PADDED in answer.output


def test_help_loads_no_verb() -> None:
    before = set(sys.modules)
    answer = run_verb("--help", status=0)
    assert all(verb in answer.output for verb in verbs())
    new = set(sys.modules) - before
    assert not any(name.startswith("hybridwatch.") for name in new)


def test_a_missing_package_is_named(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "hybridwatch.cli.judging", raising=False)
    monkeypatch.setitem(sys.modules, "hybridwatch.cli.github_access", None)
    assert "which is not installed here" in run_verb("gate", "latest", status=2).stderr


def test_ctrl_c_is_one_line_and_130(monkeypatch, call) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hybridwatch.cli.judging.findings_for", interrupt)
    assert call("gate", "latest", status=130).stderr == "hybridwatch: interrupted\n"


def test_main_leaves_with_the_status(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["hybridwatch", "gate", "latest", "--results", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("hybridwatch: ")


def test_failed_engine_is_status_1_and_the_cause_stands_below_the_end_of_its_log(
    call, monkeypatch
) -> None:
    def die(*_: object) -> None:
        error = EngineError("the engine ended while starting (status 1)", "one\nno such model\n")
        error.log = Path("/srv/.engines/logs/cpu-0.27.1.1.log")
        raise error

    monkeypatch.setattr("hybridwatch.cli.judging.findings_for", die)
    answer = call("gate", "latest", status=1)
    assert answer.stderr.splitlines() == [
        "hybridwatch: one",
        "hybridwatch: no such model",
        "hybridwatch: the engine ended while starting (status 1)",
        "hybridwatch: log: /srv/.engines/logs/cpu-0.27.1.1.log",
    ]
