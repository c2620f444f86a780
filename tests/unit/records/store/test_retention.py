"""What a policy throws away, what stays, and what a reader sees afterwards."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.cli.main import cli
from hybridwatch.errors import RecordError
from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.records.store.layout import PRUNED
from hybridwatch.records.store.maintenance import (
    OldRun,
    RetentionPolicy,
    What,
    check_store,
    may_remove,
    plan_removals,
    remove,
)
from tests.builders import STARTED, a_run, noisy

NOW = STARTED + timedelta(days=400)
POLICY = RetentionPolicy(answers_days=30, every_days=180)
BASELINE = """\
[[baseline]]
scenario = "{scenario}"
testbed = "t"
run = "00000001"
reason = "before the rework"
date = 2026-11-21
"""


def at(days_ago, *, like=("s", "t", "a", "b"), run=None):
    run = run or f"{days_ago:08x}"
    return OldRun(f"records/t/{run}.json", run, like, NOW - timedelta(days=days_ago))


def planned(tmp_path, runs, protected=(), policy=POLICY):
    for run in runs:
        (tmp_path / run.record).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / run.record).write_text("{}")
        (tmp_path / run.record.replace(".json", ".bulk.jsonl.gz")).write_text("answers")
    return plan_removals(tmp_path, runs, dict.fromkeys(protected, "why"), policy, NOW)


def removed(plan, what):
    return {one.file.split("/")[-1].split(".")[0] for one in plan.removals if one.what is what}


def test_answers_go_first_and_young_ones_stay(tmp_path):
    plan = planned(tmp_path, [at(29), at(31), at(100)])
    assert removed(plan, What.ANSWERS) == {f"{31:08x}", f"{100:08x}"}
    assert removed(plan, What.RECORD) == set()
    assert (plan.kept, plan.size) == (3, 2 * len("answers"))


def test_of_old_records_the_first_of_a_week_stays(tmp_path):
    runs = [at(days) for days in range(190, 211)]
    plan = planned(tmp_path, runs)
    weeks = {run.started_at.isocalendar()[:2] for run in runs}
    assert plan.kept == len(weeks)
    first = min(runs, key=lambda run: run.started_at)
    assert first.run not in removed(plan, What.RECORD)


def test_others_of_the_week_stay_if_they_are_of_something_else(tmp_path):
    others = [("s2", "t", "a", "b"), ("s", "t2", "a", "b"), ("s", "t", "a", "c")]
    same_day = [at(200), *(at(200, like=one, run=str(n)) for n, one in enumerate(others))]
    assert planned(tmp_path, same_day).kept == 4


def test_what_somebody_rests_on_stays_whole_and_stands_for_its_week(tmp_path):
    monday = (NOW - timedelta(days=200)).weekday()
    runs = [at(200 + monday - day) for day in range(3)]
    plan = planned(tmp_path, runs, protected=[runs[1].run])
    assert plan.protected == {runs[1].run: "why"}
    assert removed(plan, What.RECORD) == {runs[0].run, runs[2].run}
    assert runs[1].run not in removed(plan, What.ANSWERS)


def test_a_young_run_is_not_named_as_protected(tmp_path):
    assert planned(tmp_path, [at(1)], protected=[at(1).run]).protected == {}


def test_only_what_is_old_and_nobodys_example_may_go(tmp_path):
    young, old = (
        tmp_path / f"{STARTED:%Y%m%dT%H%M%SZ}-{build}-0000000{number}.json"
        for number, build in enumerate(("a", "b"))
    )
    day = timedelta(days=1)
    assert not may_remove([young, old], (), POLICY, STARTED + 30 * day)
    assert may_remove([young, old], (), POLICY, STARTED + 31 * day)
    assert not may_remove([young, old], {"00000000", "00000001"}, POLICY, STARTED + 31 * day)
    assert may_remove([young, old], {"00000000"}, POLICY, STARTED + 31 * day)
    assert may_remove([tmp_path / "renamed.json"], (), POLICY, STARTED)


def stored(tmp_path, nights=3):
    for night in range(nights):
        one = a_run(
            {"ttft": noisy(0.1, seed=night), "accuracy.recall": "1" * 40},
            {"ttft": noisy(0.1, seed=night), "accuracy.recall": "1" * 20 + "0" * 20},
            id=f"{night:08x}",
            started_at=datetime.now(UTC) - timedelta(days=300 - night),
        )
        write_run(tmp_path, one)
    return tmp_path


def call(results, *words, status=0):
    done = CliRunner().invoke(cli, ["prune", "--results", str(results), *words])
    assert done.exit_code == status, done.output
    return done.output


def files_in(results):
    return sorted(str(path) for path in (results / "records").rglob("*") if path.is_file())


def test_nothing_is_removed_unless_it_is_wanted(tmp_path):
    results = stored(tmp_path)
    before = files_in(results)
    assert "nothing was removed yet: --yes does it" in call(results)
    assert files_in(results) == before
    assert not (results / PRUNED).exists()


def test_what_is_left_is_read_judged_and_as_it_was_written(tmp_path):
    results = stored(tmp_path)
    (results / "baselines.toml").write_text(BASELINE.format(scenario="smoke/x"))
    answer = json.loads(call(results, "--yes", "--json"))
    assert answer["protected"] == [
        {"run": "00000001", "reason": "pinned as a baseline: before the rework"}
    ]
    assert answer["kept"] + sum(one["what"] == "record" for one in answer["removals"]) == 3
    checked = check_store(results, lambda _done, _all: None)
    assert (checked.records, checked.wrong) == (answer["kept"], {})
    for path in list_records(results):
        verdicts = {one.metric.id: one.verdict for one in build_report(read_run(path)).comparisons}
        kept_whole = path.stem.endswith("00000001")
        expected = Verdict.REGRESSION if kept_whole else Verdict.INCONCLUSIVE
        assert verdicts["accuracy.recall"] is expected
    assert call(results, "--yes", "--json").count('"what"') == 0


def test_answers_that_were_lost_are_still_a_fault(tmp_path):
    results = stored(tmp_path, nights=2)
    call(results, "--yes", "--every-days", "10000")
    (results / PRUNED).unlink()
    for path in list_records(results):
        with pytest.raises(RecordError, match="cannot read"):
            read_run(path)
    assert len(check_store(results, lambda _done, _all: None).wrong) == 2


def test_stopped_at_any_time_what_is_left_is_whole(tmp_path):
    results = stored(tmp_path)
    policy, now = RetentionPolicy(0, 0), datetime.now(UTC)
    runs = [OldRun(str(path.relative_to(results)), path.stem[-8:], ("s",), now - timedelta(days=9))
            for path in list_records(results)]  # fmt: skip
    plan = plan_removals(results, runs, {}, policy, now)
    assert len(plan.removals) == 5
    for _ in remove(results, plan.removals, now):
        assert check_store(results, lambda _done, _all: None).wrong == {}


def test_a_note_that_was_cut_short_is_no_note(tmp_path):
    results = stored(tmp_path, nights=1)
    call(results, "--yes")
    with (results / PRUNED).open("a") as notes:
        notes.write('{"file": "rec')
    assert read_run(list_records(results)[0]).id == "00000000"


def test_where_nothing_is_old_no_database_is_made_and_nothing_is_judged(tmp_path):
    results = stored(tmp_path)
    before = sorted(results.iterdir())
    assert "3 records stay" in call(results, "--answers-days", "400", "--every-days", "400")
    assert sorted(results.iterdir()) == before
    call(results)
    assert sorted(results.iterdir()) != before


def test_examples_stay_whole(tmp_path):
    results = stored(tmp_path)
    (results / "examples.txt").write_text("00000001\n")
    answer = json.loads(call(results, "--yes", "--json"))
    assert answer["protected"][0]["run"] == "00000001"
    (results / "examples.txt").write_text("".join(f"{night:08x}\n" for night in range(3)))
    assert "would remove 0 bytes" in call(results)
