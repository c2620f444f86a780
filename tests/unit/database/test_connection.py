"""What can happen to a SQLite file and its folder; a PostgreSQL server that comes and goes."""

import os
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database import queries
from hybridwatch.database.connection import DATABASE_FILE, DATABASE_VARIABLE, Database, parsed
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.queries import open_index
from hybridwatch.database.writing import put_in_place
from hybridwatch.errors import DatabaseError, TriageError
from tests.postgres import MISSING, Server, running, schema_of
from tests.shipped import ROOT
from tests.unit.analysis.alerts.builders import alert_of, noon, note
from tests.unit.database.stores import add, opened
from tests.unit.database.test_update import LARGE, answers_of
from tests.waiting import wait_until


def test_it_lies_next_to_the_records_and_readers_do_not_wait(tmp_path):
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


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A server that nobody else has, and the URL of a schema in it."""
    with running() as found:
        if found is None:
            pytest.skip(MISSING)
        with schema_of(found) as url:
            monkeypatch.setenv(DATABASE_VARIABLE, url)
            yield found


def restart(server: Server) -> None:
    server.stop()
    server.start()


def test_a_server_that_was_started_again_is_found_again_and_lost_nothing(own, tmp_path):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    before = answers_of(index)
    with open_triage(tmp_path) as triage:
        known = triage.decide(alert_of(Verdict.REGRESSION), note("kept"), "Ann", noon(0))
        restart(own)
        assert answers_of(index) == before
        assert list(triage.decisions().values()) == [known]


def test_while_a_server_is_away_it_is_named_and_nothing_is_read_from_elsewhere(own, tmp_path):
    add(tmp_path, 1)
    index = opened(tmp_path).index
    own.stop()
    try:
        assert not index.is_current()
        with pytest.raises(DatabaseError, match=r"^postgresql\+psycopg://hybridwatch@"):
            opened(tmp_path)
        with open_triage(tmp_path) as triage, pytest.raises(TriageError, match="postgresql"):
            triage.decisions()
    finally:
        own.start()
    assert opened(tmp_path).read == 0


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=LARGE)])
def test_restarted_again_and_again_under_load_loses_nothing_and_keeps_nothing_half(
    own, tmp_path, times
):
    for number in range(4):
        add(tmp_path, number)
    whole = answers_of(opened(tmp_path).index)
    ended = threading.Event()
    heard: list[tuple[int, int]] = []

    def load() -> None:
        while not ended.is_set():
            with suppress(DatabaseError):
                open_index(tmp_path, lambda *step: heard.append(step), rebuild=True)

    def has_heard(enough: int) -> bool:
        return len(heard) >= enough

    with ThreadPoolExecutor(2) as threads:
        loads = [threads.submit(load) for _ in range(2)]
        try:
            for number in range(times):
                # Records were read since the last time, now more and now fewer of a rebuild.
                enough = len(heard) + 3 + number
                wait_until(partial(has_heard, enough), "records that are read")
                restart(own)
        finally:
            ended.set()
        for each in loads:
            each.result()  # raises whatever else went wrong
    assert answers_of(opened(tmp_path).index) == whole


def test_a_statement_that_takes_too_long_is_given_up(own, tmp_path, monkeypatch):
    monkeypatch.setattr("hybridwatch.database.connection._LONGEST_STATEMENT_S", 1)
    database = Database(parsed(own.url, "the test"))
    with (
        pytest.raises(DatabaseError, match="statement timeout"),
        database.reading() as connection,
    ):
        connection.exec_driver_sql("SELECT pg_sleep(600)")


@pytest.mark.parametrize("damage", [bytes(30_000), b"\xff" * 30_000])
def test_pages_that_are_damaged_behind_the_first_are_no_obstacle(tmp_path, damage):
    for number in range(1, 4):
        add(tmp_path, number)
    before = answers_of(opened(tmp_path).index)
    path = tmp_path / DATABASE_FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:60_000] + damage + whole[60_000 + len(damage) :])
    index = opened(tmp_path).index
    assert answers_of(index) == before
    assert not index.kept
    assert path.stat().st_size == len(whole), "people's decisions may be in it"
