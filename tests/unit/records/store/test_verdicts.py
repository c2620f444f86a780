"""Verdicts on disk: named, found, and honest about what was altered."""

import json
import re
from pathlib import Path

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.store import (
    StoredVerdict,
    find_results,
    find_verdict,
    list_records,
    list_verdicts,
    read_side,
    read_verdict,
    refer,
    write_run,
    write_verdict,
)
from tests.store_builders import Plan, as_version_1, run

MADE = run(Plan(documents=3, performance_trials=1))


def a_verdict(results: Path, report=None) -> StoredVerdict:
    """Store a run and judge it, whatever that says."""
    record = next(iter(list_records(results)), None) or write_run(results, MADE)
    return StoredVerdict(
        baseline=refer(results, record, MADE.id, 0),
        contender=refer(results, record, MADE.id, 1),
        parameters={"noise": {"ttft p99": 0.1}},
        tools={"numpy": "2.4.6"},
        report=report or {"effect": 0.1, "text": "\u00b5s", "none": None, "list": [1, 2.5]},
    )


def test_written_verdict_is_read_back(tmp_path) -> None:
    verdict = a_verdict(tmp_path)
    path = write_verdict(tmp_path, verdict, MADE)
    assert read_verdict(path) == (verdict, True)
    assert path.parent == tmp_path / "verdicts" / "epyc-9654-2c-linux"
    pattern = rf"20261121T091500Z-smoke-padded-graph-rows-{MADE.id}-[0-9a-f]{{8}}\.json"
    assert re.fullmatch(pattern, path.name)
    assert [path] == list_verdicts(tmp_path)
    assert list(path.parent.iterdir()) == [path]


def test_record_is_named_from_the_results_folder_on(tmp_path) -> None:
    verdict = a_verdict(tmp_path / "here")
    assert verdict.baseline.record.startswith("records/epyc-9654-2c-linux/2026")
    (tmp_path / "here").rename(tmp_path / "there")
    side = read_side(tmp_path / "there", verdict.contender)
    assert (side.run, side.index, side.as_judged) == (MADE, 1, True)


def test_record_elsewhere_is_named_in_full(tmp_path) -> None:
    record = write_run(tmp_path / "elsewhere", MADE)
    reference = refer(tmp_path / "results", record, MADE.id, 0)
    assert reference.record == record.as_posix()
    side = read_side(tmp_path / "results", reference)
    assert (side.record, side.run, side.as_judged) == (record, MADE, True)


def test_the_same_verdict_is_stored_once_another_next_to_it(tmp_path) -> None:
    verdict = a_verdict(tmp_path)
    paths = [write_verdict(tmp_path, verdict, MADE) for _ in range(2)]
    other = write_verdict(tmp_path, a_verdict(tmp_path, {"effect": 0.2}), MADE)
    assert paths[0] == paths[1] != other
    assert set(list_verdicts(tmp_path)) == {paths[0], other}


def test_a_verdict_is_found_by_path_digest_run_and_latest(tmp_path) -> None:
    path = write_verdict(tmp_path, a_verdict(tmp_path), MADE)
    digest = path.stem.rpartition("-")[2]
    for key in (str(path), digest, digest[:3], MADE.id, "latest"):
        assert find_verdict(tmp_path, key) == path
    write_verdict(tmp_path, a_verdict(tmp_path, {"effect": 0.2}), MADE)
    assert find_verdict(tmp_path, digest) == path
    with pytest.raises(RecordError, match=r"fits 2 verdicts: .*; give one of their last words"):
        find_verdict(tmp_path, MADE.id)


@pytest.mark.parametrize("key", ["", "ffffffff", "graph", "20261121T091500Z"])
def test_what_is_no_verdict_is_not_found(tmp_path, key) -> None:
    write_verdict(tmp_path, a_verdict(tmp_path), MADE)
    with pytest.raises(RecordError, match=r"found none among 1: .*compare --save"):
        find_verdict(tmp_path, key)


def test_an_edited_verdict_is_known_a_reformatted_one_is_not(tmp_path) -> None:
    path = write_verdict(tmp_path, a_verdict(tmp_path), MADE)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content, indent=4), encoding="utf-8")
    assert read_verdict(path)[1]
    content["report"]["effect"] = 0.10000000000000002
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not read_verdict(path)[1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not a stored verdict: expected JSON"),
        ("[]", "expected a JSON object, found list"),
        ('{"schema_version": 2}', "schema_version: found 2"),
        ('{"schema_version": 1}', "not a stored verdict: baseline"),
        ("\udcff", "not a stored verdict"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, text, told) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RecordError) as caught:
        read_verdict(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_record_is_no_verdict(tmp_path) -> None:
    with pytest.raises(RecordError, match="not a stored verdict but a record"):
        read_verdict(write_run(tmp_path, MADE))


def test_a_missing_record_is_named_with_what_to_do(tmp_path) -> None:
    verdict = a_verdict(tmp_path)
    (tmp_path / verdict.baseline.record).unlink()
    with pytest.raises(RecordError, match=rf"record of run {MADE.id} is not there.*--results"):
        read_side(tmp_path, verdict.baseline)


def test_a_changed_record_is_known(tmp_path) -> None:
    verdict = a_verdict(tmp_path)
    record = tmp_path / verdict.baseline.record
    as_version_1(record)
    side = read_side(tmp_path, verdict.baseline)
    assert (side.run, side.as_judged) == (MADE, False)


def test_results_are_where_the_verdict_lies(tmp_path) -> None:
    path = write_verdict(tmp_path / "mine", a_verdict(tmp_path / "mine"), MADE)
    assert find_results(path, Path("results")) == tmp_path / "mine"
    assert find_results(tmp_path / "copied.json", Path("results")) == Path("results")


def test_an_unwritable_folder_is_one_line(tmp_path) -> None:
    (tmp_path / "results").mkdir()
    verdict = a_verdict(tmp_path / "elsewhere")
    (tmp_path / "results" / "verdicts").write_text("in the way")
    with pytest.raises(RecordError, match="cannot be made"):
        write_verdict(tmp_path / "results", verdict, MADE)
