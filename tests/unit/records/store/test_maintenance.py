"""What a policy throws away and what a reader sees then; what is damaged, changed or left over."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import RecordError
from hybridwatch.records.store import list_records, read_run, write_run
from hybridwatch.records.store.layout import PRUNED, pruned_files
from hybridwatch.records.store.maintenance import (
    SUMS,
    OldRun,
    RetentionPolicy,
    What,
    add_digests,
    check_store,
    may_remove,
    note_pruned,
    plan_removals,
    remove,
)
from hybridwatch.system.files import hidden
from tests.builders import STARTED, a_run, noisy
from tests.command_line import run_verb
from tests.shipped import RESULTS
from tests.store_builders import Plan, as_version_1, run

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
    for one in runs:
        (tmp_path / one.record).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one.record).write_text("{}")
        (tmp_path / one.record.replace(".json", ".bulk.jsonl.gz")).write_text("answers")
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


def prune(results, *words, status=0):
    done = run_verb("prune", "--results", results, *words, status=status)
    return done.output


def files_in(results):
    return sorted(str(path) for path in (results / "records").rglob("*") if path.is_file())


def test_nothing_is_removed_unless_it_is_wanted(tmp_path):
    results = stored(tmp_path)
    before = files_in(results)
    assert "nothing was removed yet: --yes does it" in prune(results)
    assert files_in(results) == before
    assert not (results / PRUNED).exists()


def test_what_is_left_is_read_judged_and_as_it_was_written(tmp_path):
    results = stored(tmp_path)
    (results / "baselines.toml").write_text(BASELINE.format(scenario="smoke/x"))
    answer = json.loads(prune(results, "--yes", "--json"))
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
    assert prune(results, "--yes", "--json").count('"what"') == 0


def test_answers_that_were_lost_are_still_a_fault(tmp_path):
    results = stored(tmp_path, nights=2)
    prune(results, "--yes", "--every-days", "10000")
    (results / PRUNED).unlink()
    for path in list_records(results):
        with pytest.raises(RecordError, match="cannot be read"):
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
    prune(results, "--yes")
    with (results / PRUNED).open("a") as notes:
        notes.write('{"file": "rec')
    assert read_run(list_records(results)[0]).id == "00000000"


def test_the_next_note_takes_the_place_of_one_that_was_cut_short(tmp_path):
    note_pruned(tmp_path, "records/t/a.json", "0" * 64, "record", NOW)
    with (tmp_path / PRUNED).open("a") as notes:
        notes.write('{"file": "records/t/b.js')
    note_pruned(tmp_path, "records/t/c.json", "0" * 64, "record", NOW)
    assert pruned_files(tmp_path) == {"records/t/a.json", "records/t/c.json"}
    notes = (tmp_path / PRUNED).read_text()
    assert "b.js" not in notes
    # As earlier versions went on behind it.
    (tmp_path / PRUNED).write_text(
        notes.replace('{"file": "records/t/c', '{"fi{"file": "records/t/c')
    )
    assert pruned_files(tmp_path) == {"records/t/a.json", "records/t/c.json"}


def test_where_nothing_is_old_no_database_is_made_and_nothing_is_judged(tmp_path):
    results = stored(tmp_path)
    before = sorted(results.iterdir())
    assert "3 records stay" in prune(results, "--answers-days", "400", "--every-days", "400")
    assert sorted(results.iterdir()) == before
    prune(results)
    assert sorted(results.iterdir()) != before


def test_examples_stay_whole(tmp_path):
    results = stored(tmp_path)
    (results / "examples.txt").write_text("00000001\n")
    answer = json.loads(prune(results, "--yes", "--json"))
    assert answer["protected"][0]["run"] == "00000001"
    (results / "examples.txt").write_text("".join(f"{night:08x}\n" for night in range(3)))
    assert "would remove 0 bytes" in prune(results)


SMALL = Plan(documents=3, performance_trials=1)


@pytest.fixture
def results(tmp_path):
    """A store of one record."""
    write_run(tmp_path, run(SMALL))
    return tmp_path


@pytest.fixture
def old(tmp_path):
    """A store of one record of schema version 1."""
    as_version_1(write_run(tmp_path, run(SMALL)))
    return tmp_path


def checked(results):
    return check_store(results, lambda _done, _total: None)


def name_of(results):
    (record,) = list_records(results)
    return record.relative_to(results).as_posix()


def check(results, *words):
    done = run_verb("store", "check", "--results", results, *words)
    return done.exit_code, done.output


def test_a_store_as_it_was_written_is_right(results):
    found = checked(results)
    assert (found.records, found.wrong, found.without_digest) == (1, {}, {})
    assert check(results) == (0, "1 record, 0 verdicts: as they were written\n")


def test_every_flipped_byte_of_a_record_is_found(results):
    (record,) = list_records(results)
    whole = record.read_bytes()
    for place in range(0, len(whole), len(whole) // 20):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        record.write_bytes(flipped)
        assert list(checked(results).wrong) == [name_of(results)]


def test_answers_that_are_changed_cut_or_gone_are_found(results):
    (beside,) = results.rglob("*.bulk.jsonl.gz")
    whole = beside.read_bytes()
    for content in (whole[:-1], whole[:-9] + b"x" + whole[-8:]):
        beside.write_bytes(content)
        (why,) = checked(results).wrong.values()
        assert "sha256: expected" in why
    beside.unlink()
    assert list(checked(results).wrong.values()) == ["cannot be read: No such file or directory"]


def test_a_record_of_version_1_gets_a_digest_that_the_usual_tool_checks(old):
    assert "1 record of schema version 1 without a digest" in check(old)[1]
    assert "written to SHA256SUMS" in check(old, "--seal")[1]
    assert checked(old).without_digest == {}
    tool = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
    subprocess.run(tool, cwd=old, check=True)
    (record,) = list_records(old)
    record.write_bytes(record.read_bytes().replace(b'"cores": ', b'"cores": 1'))
    (why,) = checked(old).wrong.values()
    assert f"as in {SUMS}, found" in why
    assert subprocess.run(tool, cwd=old, check=False, capture_output=True).returncode == 1


def test_sealing_again_keeps_what_was_sealed(old):
    check(old, "--seal")
    first = (old / SUMS).read_text()
    add_digests(old, {"records/t/other.json": "0" * 64})
    assert first in (old / SUMS).read_text()
    assert checked(old).wrong == {"records/t/other.json": f"named in {SUMS} and not there"}


def test_what_a_killed_process_left_is_a_fault_and_repaired(results):
    (beside,) = results.rglob("*.bulk.jsonl.gz")
    left = beside.with_name("20260101T000000Z-x-00000000.bulk.jsonl.gz")
    shutil.copy(beside, left)
    half = beside.with_name(hidden("half"))
    half.write_bytes(b"{")
    status, text = check(results)
    assert status == 1
    said = "00000000.bulk.jsonl.gz: has no record, left by a process that was killed; --repair"
    assert said in text
    status, text = check(results, "--repair", "--json")
    found = json.loads(text)
    assert (status, found["repaired"], len(found["leftovers"])) == (0, True, 2)
    assert not left.exists()
    assert not half.exists()
    assert check(results) == (0, "1 record, 0 verdicts: as they were written\n")


def test_a_sum_that_is_none_is_refused(results):
    (results / SUMS).write_text("0123  x.json\n")
    with pytest.raises(RecordError, match=f"{SUMS}: line 1: expected a digest, two spaces"):
        checked(results)


def test_a_verdict_that_was_changed_is_found(tmp_path):
    shutil.copytree(RESULTS / "records", tmp_path / "records")
    run_verb("compare", "c3a4a83b", "--results", tmp_path, "--save", status=1)
    assert checked(tmp_path).verdicts == 1
    (verdict,) = (tmp_path / "verdicts").rglob("*.json")
    verdict.write_text(verdict.read_text().replace("regression", "equivalent"))
    status, text = check(tmp_path, "--json")
    assert status == 1
    (wrong,) = json.loads(text)["wrong"]
    assert wrong["file"] == verdict.relative_to(tmp_path).as_posix()


def test_the_shipped_records_are_as_they_were_written_and_all_have_a_digest():
    found = checked(RESULTS)
    assert (found.wrong, found.without_digest, found.leftovers) == ({}, {}, [])
