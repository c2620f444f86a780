"""A PostgreSQL server that comes and goes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from hybridwatch.analysis.verdict import Verdict
from hybridwatch.database.connection import Database
from hybridwatch.database.decisions import open_triage
from hybridwatch.database.update import open_index
from hybridwatch.database.url import DATABASE_VARIABLE, parsed
from hybridwatch.errors import DatabaseError, TriageError
from tests.postgres import MISSING, Server, running, schema_of
from tests.unit.analysis.alerts.builders import alert_of, noon, note
from tests.unit.database.stores import add, opened
from tests.unit.database.test_update import LARGE, answers_of
from tests.waiting import wait_until


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
