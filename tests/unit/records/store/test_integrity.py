"""``hybridwatch store check``: what is damaged, changed, missing or left over is named."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridwatch.cli.main import cli
from hybridwatch.errors import RecordError
from hybridwatch.records.store import list_records, write_run
from hybridwatch.records.store.maintenance import SUMS, add_digests, check_store
from tests.store_builders import Plan, as_version_1, run

SHIPPED = Path(__file__).parents[4] / "results"
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


def call(results, *words):
    done = CliRunner().invoke(cli, ["store", "check", "--results", str(results), *words])
    return done.exit_code, done.output


def test_a_store_as_it_was_written_is_right(results):
    found = checked(results)
    assert (found.records, found.wrong, found.without_digest) == (1, {}, {})
    assert call(results) == (0, "1 record, 0 verdicts: as they were written\n")


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
    assert "1 record of schema version 1 without a digest" in call(old)[1]
    assert "written to SHA256SUMS" in call(old, "--seal")[1]
    assert checked(old).without_digest == {}
    tool = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
    subprocess.run(tool, cwd=old, check=True)
    (record,) = list_records(old)
    record.write_bytes(record.read_bytes().replace(b'"cores": ', b'"cores": 1'))
    (why,) = checked(old).wrong.values()
    assert f"as in {SUMS}, found" in why
    assert subprocess.run(tool, cwd=old, check=False, capture_output=True).returncode == 1


def test_sealing_again_keeps_what_was_sealed(old):
    call(old, "--seal")
    first = (old / SUMS).read_text()
    add_digests(old, {"records/t/other.json": "0" * 64})
    assert first in (old / SUMS).read_text()
    assert checked(old).wrong == {"records/t/other.json": f"named in {SUMS} and not there"}


def test_what_a_killed_process_left_is_named_and_no_fault(results):
    (beside,) = results.rglob("*.bulk.jsonl.gz")
    shutil.copy(beside, beside.with_name("20260101T000000Z-x-00000000.bulk.jsonl.gz"))
    status, text = call(results)
    assert status == 0
    assert "00000000.bulk.jsonl.gz: has no record, left by a process that was killed" in text


def test_a_sum_that_is_none_is_refused(results):
    (results / SUMS).write_text("0123  x.json\n")
    with pytest.raises(RecordError, match=f"{SUMS}: line 1: expected a digest, two spaces"):
        checked(results)


def test_a_verdict_that_was_changed_is_found(tmp_path):
    shutil.copytree(SHIPPED / "records", tmp_path / "records")
    done = CliRunner().invoke(cli, ["compare", "c3a4a83b", "--results", str(tmp_path), "--save"])
    assert done.exit_code == 1, done.output
    assert checked(tmp_path).verdicts == 1
    (verdict,) = (tmp_path / "verdicts").rglob("*.json")
    verdict.write_text(verdict.read_text().replace("regression", "equivalent"))
    status, text = call(tmp_path, "--json")
    assert status == 1
    (wrong,) = json.loads(text)["wrong"]
    assert wrong["file"] == verdict.relative_to(tmp_path).as_posix()


def test_the_shipped_records_are_as_they_were_written_and_all_have_a_digest():
    found = checked(SHIPPED)
    assert (found.wrong, found.without_digest, found.leftovers) == ({}, {}, [])
