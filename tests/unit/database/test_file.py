"""What can happen to a SQLite file and its folder."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from hybridwatch.database import queries
from hybridwatch.database.connection import DATABASE_FILE
from hybridwatch.database.writing import put_in_place
from hybridwatch.errors import DatabaseError
from tests.unit.database.stores import add, opened
from tests.unit.database.test_update import answers_of

ROOT = Path(__file__).parents[3]


def test_it_lies_beside_the_records_and_readers_do_not_wait(tmp_path):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as writer:
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM run")
        assert len(index.runs()) == 2


def test_what_lies_in_its_place_is_no_obstacle_and_stays(tmp_path):
    add(tmp_path, 1)
    (tmp_path / DATABASE_FILE).mkdir()
    found = opened(tmp_path)
    assert not found.index.kept
    assert found.runs == {"00000001"}
    assert (tmp_path / DATABASE_FILE).is_dir()


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be one", b"SQLite"])
def test_a_file_that_is_no_database_is_no_obstacle_and_stays(tmp_path, content):
    add(tmp_path, 1)
    (tmp_path / DATABASE_FILE).write_bytes(content)
    found = opened(tmp_path)
    assert not found.index.kept
    assert found.runs == {"00000001"}
    assert (tmp_path / DATABASE_FILE).read_bytes() == content, "people's decisions may be in it"


def test_damaged_pages_are_no_obstacle(tmp_path):
    add(tmp_path, 1)
    before = answers_of(opened(tmp_path).index)
    path = tmp_path / DATABASE_FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(len(whole) - 200))
    found = opened(tmp_path)
    assert answers_of(found.index) == before


def test_full_disk_is_no_obstacle_and_what_was_there_is_not_read_again(tmp_path, monkeypatch):
    add(tmp_path, 1)
    opened(tmp_path)
    add(tmp_path, 2)

    def full(database, *others):
        if database.kept:
            raise DatabaseError("database or disk is full")
        put_in_place(database, *others)

    with monkeypatch.context() as disk:
        disk.setattr(queries, "put_in_place", full)
        found = opened(tmp_path)
        assert not found.index.kept
        assert found.read == 1
        assert found.runs == {"00000001", "00000002"}
    assert opened(tmp_path).index.kept


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_read_only_folder_is_no_obstacle(tmp_path):
    add(tmp_path, 1)
    opened(tmp_path)
    tmp_path.chmod(0o500)
    found = opened(tmp_path)
    assert not found.index.kept
    assert found.read == 0


def test_copy_goes_with_who_made_it(tmp_path):
    add(tmp_path, 1)
    (tmp_path / DATABASE_FILE).mkdir()
    index = opened(tmp_path).index
    copy = Path(index.database.name)
    assert copy.exists()
    del index
    assert not copy.exists()


def test_git_keeps_none_of_it():
    listed = [f"results/{DATABASE_FILE}{suffix}" for suffix in ("", "-wal", "-shm")]
    ignored = subprocess.run(
        ["git", "check-ignore", *listed], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ignored.stdout.split() == listed
