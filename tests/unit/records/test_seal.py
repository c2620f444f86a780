"""A record's digest: what it catches, and that older records have none."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode, encode
from tests.store_builders import Plan, run

GOLDEN = Path(__file__).parents[2] / "golden" / "record"

RECORD = encode(run(Plan(documents=3, performance_trials=1))).record
OLDER = (GOLDEN / "v1-looks.json").read_bytes()


def swapped(old: str, new: str) -> bytes:
    assert RECORD.count(old.encode()) >= 1, old
    return RECORD.replace(old.encode(), new.encode(), 1)


def test_every_record_that_is_written_has_a_digest_of_the_file_without_its_line() -> None:
    lines = RECORD.splitlines(keepends=True)
    rest = [line for line in lines if not line.startswith(b'  "sha256": ')]
    assert len(rest) == len(lines) - 1
    stated = json.loads(RECORD)["sha256"]
    assert hashlib.sha256(b"".join(rest)).hexdigest() == stated
    assert decode(RECORD, None).sha256 == stated


def test_no_flipped_bit_is_ever_taken() -> None:
    """Every bit of the digest's neighbourhood, and one of each byte elsewhere."""
    seal = RECORD.index(b'"schema_version"'), RECORD.index(b'"started_at"')
    for at in range(len(RECORD)):
        for bit in range(8) if seal[0] <= at < seal[1] else (at % 8,):
            damaged = bytearray(RECORD)
            damaged[at] ^= 1 << bit
            with pytest.raises(RecordError) as error:
                decode(bytes(damaged), None)
            assert "\n" not in str(error.value)


def test_a_value_that_was_changed_is_named_by_the_digest() -> None:
    with pytest.raises(
        RecordError, match=r"sha256: expected .*, found .*: the file is not as it w"
    ):
        decode(swapped('"cores": 2', '"cores": 3'), None)


def test_a_damaged_value_that_is_refused_by_itself_is_told_with_the_damage() -> None:
    with pytest.raises(RecordError, match=r"^testbed\.cores: .*; sha256: the file is not as it wa"):
        decode(swapped('"cores": 2', '"cores": "2"'), None)


@pytest.mark.parametrize("version", [1, 2])
def test_a_new_record_does_not_pass_without_its_digest_or_as_an_old_one(version: int) -> None:
    raw = json.loads(RECORD) | {"schema_version": version}
    if version == 2:
        del raw["sha256"]
    with pytest.raises(RecordError, match=r"sha256: expected (no such key in schema_ver|a value)"):
        decode(json.dumps(raw).encode(), None)


@pytest.mark.parametrize("change", [b"\r\n", b"\n\n", b" \n"])
def test_a_record_that_was_laid_out_anew_is_refused(change: bytes) -> None:
    with pytest.raises(RecordError, match="sha256: expected"):
        decode(RECORD.replace(b"\n", change), None)


def test_a_record_of_version_1_has_no_digest_and_is_read_however_it_is_laid_out() -> None:
    known = decode(OLDER, None)
    assert known.sha256 is None
    assert decode(json.dumps(json.loads(OLDER)).encode(), None) == known


def test_a_run_is_the_same_whatever_its_record_was() -> None:
    known = decode(RECORD, None)
    assert replace(known, sha256=None) == known
    assert decode(encode(replace(known, sha256="0" * 64)).record, None).sha256 != "0" * 64
