"""Only regular files are read, and none that is too large: looked at before, and never hanging."""

import os
import socket
from pathlib import Path

import pytest

from hybridwatch.database.heads import read_alike, read_newest
from hybridwatch.errors import RecordError
from hybridwatch.records.fields import MOST_RECORD_BYTES
from hybridwatch.records.store import (
    list_records,
    read_baselines,
    read_file,
    read_run,
    read_verdict,
    write_run,
)
from tests.command_line import run_verb
from tests.refusals import refusal
from tests.store_builders import Plan, read_all, run

SMALL = run(Plan(documents=3, performance_trials=1))


def pipe(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


def sparse(path: Path, size: int) -> Path:
    """A file that says it has so many bytes, and takes none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A good record, for its place and its name."""
    return write_run(tmp_path, SMALL)


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_file(path, 100) == b"x" * 100
    with pytest.raises(RecordError, match=r"^expected at most 99 bytes, found 100$"):
        read_file(path, 99)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_file(link, 100) == b"x" * 100


def test_a_file_that_says_nothing_of_its_size_is_read_up_to_its_limit() -> None:
    with pytest.raises(RecordError, match="expected at most 2 bytes, found 3"):
        read_file(Path("/proc/self/stat"), 2)
    assert read_file(Path("/proc/self/stat"), 100_000).startswith(b"%d " % os.getpid())


def test_what_is_no_regular_file_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        for path, noun in (
            (pipe(tmp_path / "pipe"), "a pipe"),
            (Path("/dev/zero"), "a device"),
            (tmp_path, "a folder"),
            (tmp_path / "socket", "a socket"),
        ):
            with pytest.raises(RecordError, match=f"^expected a regular file, found {noun}$"):
                read_file(path, 100)


def test_a_loop_of_links_is_one_line(record: Path) -> None:
    record.unlink()
    record.symlink_to(record)
    with pytest.raises(RecordError, match=r"cannot be read: .*symbolic links"):
        read_run(record)


def test_a_pipe_among_the_records_is_broken_and_hides_no_other(tmp_path: Path, record) -> None:
    hostile = pipe(record.with_name(f"20270101T000000Z-x-{'e' * 8}.json"))
    for shelf in (read_all(tmp_path), read_newest(tmp_path)):
        assert [stored.path for stored in shelf.runs] == [record]
        (broken,) = shelf.broken
        assert (broken.path, broken.reason) == (hostile, "expected a regular file, found a pipe")
    assert read_alike(tmp_path, SMALL, {SMALL.builds[0].label}, newest=3) == ()
    answer = run_verb("records", "--results", tmp_path, status=0)
    assert f"{hostile}: expected a regular file, found a pipe" in answer.stderr


def test_a_bulk_that_is_a_pipe_or_too_large_is_named(record: Path) -> None:
    bulk = record.with_name(record.stem + ".bulk.jsonl.gz")
    for make, told in (
        (lambda: pipe(bulk), "expected a regular file, found a pipe"),
        (lambda: sparse(bulk, 2**40), f"expected at most {64 * 2**20} bytes, found {2**40}"),
    ):
        bulk.unlink()
        make()
        assert refusal(RecordError, read_run, record) == f"{record}: {bulk.name}: {told}"


def test_a_record_of_gigabytes_is_refused_by_its_size(record: Path) -> None:
    record.unlink()
    sparse(record, 2**40)
    with pytest.raises(RecordError, match=f"expected at most {MOST_RECORD_BYTES} bytes, found"):
        read_run(record)


def test_verdicts_and_baselines_are_regular_files_too(tmp_path: Path) -> None:
    for read, path in (
        (read_verdict, tmp_path / "verdict.json"),
        (lambda path: read_baselines(path.parent), tmp_path / "baselines.toml"),
    ):
        pipe(path)
        with pytest.raises(RecordError, match=f"{path}: expected a regular file, found a pipe"):
            read(path)


def test_ingest_takes_no_pipe_and_no_file_of_gigabytes(tmp_path: Path, record: Path) -> None:
    results = tmp_path / "new"
    flood = sparse(tmp_path / "in" / "flood.json", 2**40)
    hostile = pipe(tmp_path / "in" / "pipe.json")
    bulk = record.with_name(record.stem + ".bulk.jsonl.gz")
    bulk.unlink()
    pipe(bulk)
    words = ["ingest", str(flood), str(hostile), str(record), "--results", str(results)]
    answer = run_verb(*words, status=1)
    told = answer.stderr.splitlines()
    assert told[0] == f"{flood}: expected at most {256 * 2**20} bytes, found {2**40}"
    assert told[1] == f"{hostile}: expected a regular file, found a pipe"
    assert told[2] == f"{record}: {bulk.name}: expected a regular file, found a pipe"
    assert len(told) == 3
    assert list_records(results) == []
