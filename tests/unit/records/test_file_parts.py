"""What is too large for a record is refused in one line; what its digest catches."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hybridwatch.errors import RecordError
from hybridwatch.records.codec import decode, encode
from hybridwatch.records.file_parts import render_sealed
from hybridwatch.records.run import Run, Sample
from tests.store_builders import Plan, run

SMALL = run(Plan(documents=3, performance_trials=1, failed_trials=1))

HUGE = 10**400


def altered(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The small record with one thing changed, and a digest that is right."""
    raw = json.loads(encode(SMALL).record)
    change(raw)
    return render_sealed(raw).encode()


def refusal(record: bytes, bulk: bytes | None = None) -> str:
    with pytest.raises(RecordError) as error:
        decode(record, bulk)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
    return str(error.value)


MARK = 987654321
"""Stands for a number that Python would not write."""


@pytest.mark.parametrize("digits", [str(2**31), str(2**63), "1" + 30 * "0", 400 * "9", "-1"])
@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("scenario.version", lambda raw: raw["scenario"].update(version=MARK)),
        ("testbed.cores", lambda raw: raw["testbed"].update(cores=MARK)),
        ("bulk.lines", lambda raw: raw["bulk"].update(lines=MARK)),
        ("trials[0].index", lambda raw: raw["trials"][0].update(index=MARK)),
        ("trials[0].side", lambda raw: raw["trials"][0].update(side=MARK)),
    ],
)
def test_a_whole_number_that_nothing_can_hold_is_refused(path, change, digits: str) -> None:
    told = refusal(altered(change).replace(str(MARK).encode(), digits.encode()))
    assert told.startswith(f"{path}: expected ")
    assert "found" in told


def test_a_number_that_python_does_not_read_is_refused() -> None:
    record = altered(lambda raw: raw["testbed"].update(cores=MARK))
    assert "not whole JSON" in refusal(record.replace(str(MARK).encode(), 5000 * b"9"))


@pytest.mark.parametrize("number", [2**61, 2**63, HUGE, -1])
def test_a_memory_that_no_machine_has_is_refused(number: int) -> None:
    told = refusal(altered(lambda raw: raw["testbed"].update(memory_bytes=number)))
    assert told.startswith("testbed.memory_bytes: expected ")
    assert "found" in told


@pytest.mark.parametrize("number", [1e308, -1e308, 1e31, 5e-324, -1e-31, HUGE])
def test_a_value_that_no_sum_or_ratio_can_hold_is_refused(number: float) -> None:
    told = refusal(altered(lambda raw: raw["trials"][0]["samples"][0].update(values=[number])))
    assert told.startswith("trials[0].samples[0].values")
    assert "expected" in told


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 400])
def test_a_number_that_is_none_is_refused_wherever_it_stands(number: str) -> None:
    for change in (
        lambda raw: raw["trials"][0].update(duration_s=MARK),
        lambda raw: raw["trials"][0]["samples"][0].update(values=[MARK]),
    ):
        told = refusal(altered(change).replace(str(MARK).encode(), number.encode()))
        assert told.startswith("trials[0].")
        assert "expected" in told


@pytest.mark.parametrize("key", ["started_at", "finished_at"])
@pytest.mark.parametrize("year", ["0001", "1969", "2200", "9999"])
def test_a_year_that_not_every_tool_can_show_is_refused(key: str, year: str) -> None:
    told = refusal(altered(lambda raw: raw.update({key: f"{year}-01-01T00:00:00Z"})))
    assert told.startswith(f"{key}: expected a time of the years 1970 to 2199, found")


@pytest.mark.parametrize(
    "changed",
    [
        replace(SMALL, scenario=replace(SMALL.scenario, version=2**31)),
        replace(SMALL, testbed=replace(SMALL.testbed, memory_bytes=HUGE)),
        replace(SMALL, started_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9)))),
        replace(SMALL, finished_at=datetime(9999, 12, 31, 23, tzinfo=UTC)),
        replace(SMALL, trials=(replace(SMALL.trials[0], samples=(Sample("ttft", (1e308,)),)),)),
        replace(SMALL, trials=(replace(SMALL.trials[0], client_result={"a": [1, 2**70]}),)),
        replace(SMALL, builds=(replace(SMALL.builds[0], label="x" * 10_000_000),)),
    ],
)
def test_what_would_not_be_read_is_not_written(changed: Run) -> None:
    with pytest.raises(RecordError, match="expected"):
        encode(changed)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda raw: raw["builds"][0].update(label="x" * 10_000_000), "builds[0].label: expected"),
        (lambda raw: raw["builds"][0]["flags"].update({"x" * 5_000: "1"}), "builds[0].flags."),
        (lambda raw: raw["testbed"].update(gpus=["x"] * 1_001), "testbed.gpus: expected at most"),
        (lambda raw: raw["trials"][0].update(samples=samples(4_001)), "trials[0].samples: expect"),
        (lambda raw: raw.update(trials=trials(2_001)), "trials: expected at most 2000 that did no"),
        (lambda raw: raw.update(trials=trials(10_001)), "trials[10000].index: expected less"),
        (lambda raw: spread(raw, 6_000), "trials: expected at most 4000 metrics, found 6"),
        (lambda raw: raw["trials"][0]["samples"][0].update(metric=f"accuracy.{'x' * 9_999}"), "tr"),
    ],
)
def test_a_flood_is_refused_by_its_length(change, told: str) -> None:
    assert refusal(altered(change)).startswith(told)


def samples(many: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"metric": f"asv_number.n{first + number}", "values": [1.0], "statistic": "median"}
        for number in range(many)
    ]


def trials(many: int) -> list[dict[str, Any]]:
    [trial] = json.loads(encode(replace(SMALL, trials=SMALL.trials[:1])).record)["trials"]
    return [trial | {"index": index} for index in range(many)]


def spread(raw: dict[str, Any], many: int) -> None:
    for at, trial in enumerate(raw["trials"][:2]):
        trial["samples"] = samples(many // 2, at * many)


@pytest.mark.parametrize("found", ["NaN", "1e999", str(2**64), "9" * 400, "[[[0.5, [1e999]]]]"])
def test_a_number_of_the_load_client_is_bounded_too(found: str) -> None:
    bulk = gzip.compress(f'{{"trial": 0, "client_result": {{"itls": [0.1, {found}]}}}}\n'.encode())
    digest = hashlib.sha256(bulk).hexdigest()
    record = altered(lambda raw: raw["bulk"].update(sha256=digest, lines=1))
    assert "line 1: client_result: itls[1]" in refusal(record, bulk)


def test_a_small_bulk_that_holds_gigabytes_is_refused_without_making_them(monkeypatch) -> None:
    monkeypatch.setattr("hybridwatch.records.bulk_lines.MOST_UNZIPPED_BYTES", 10_000_000)
    bulk = gzip.compress(b" " * 200_000_000)
    digest = hashlib.sha256(bulk).hexdigest()
    record = altered(lambda raw: raw["bulk"].update(sha256=digest, lines=1))
    assert "expected at most 10000000 bytes uncompressed" in refusal(record, bulk)


@pytest.mark.parametrize("limit", ["MOST_RECORD_BYTES", "MOST_BULK_BYTES", "MOST_UNZIPPED_BYTES"])
def test_a_run_that_is_too_large_to_be_read_is_not_written(monkeypatch, limit: str) -> None:
    monkeypatch.setattr(f"hybridwatch.records.codec.{limit}", 100)
    with pytest.raises(RecordError, match=r"cannot be kept: .*: expected at most 100 bytes"):
        encode(SMALL)


@pytest.mark.parametrize("key", ["a\nb", "\x1b[31m", "x" * 5_000, "\u202e"])
def test_a_key_from_outside_neither_breaks_the_line_nor_commands_the_terminal(key: str) -> None:
    told = refusal(altered(lambda raw: raw["testbed"].update({key: 1})))
    assert told.isprintable()
    assert told.startswith("testbed.")


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


def test_a_damaged_value_that_is_refused_by_itself_is_reported_with_the_damage() -> None:
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
def test_a_record_that_was_laid_out_again_is_refused(change: bytes) -> None:
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
