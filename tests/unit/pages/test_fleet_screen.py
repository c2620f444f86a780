"""A fleet as its two screens tell it."""

from dataclasses import replace
from pathlib import Path

import pytest

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.orchestration.fleet.job import AttemptEnd, Start
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.pages.document import Code
from tests.dashboard.parity import words_of
from tests.unit.orchestration.fleet.pretended import a_job
from tests.unit.orchestration.fleet.simulated import Machine, Simulated, World
from tests.unit.pages.suite_stores import notices, rows, view


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        Database(find_database_url(tmp_path)),
        tmp_path,
        Simulated({"h0": Machine(), "h1": Machine()}),
    )


def test_without_a_queue_the_screen_says_how_to_fill_one(tmp_path):
    assert "hybridwatch fleet plan" in words_of(view(tmp_path, "fleet"))


def test_the_screen_has_nights_hosts_and_what_went_wrong(tmp_path, world):
    jobs = [a_job(number) for number in range(4)]
    for machine in world.cluster.machines.values():
        machine.dies = frozenset({jobs[0].scenario})
    world.plan(jobs)
    world.drain()
    shown = view(tmp_path, "fleet")
    assert [row[0] for row in rows(shown, "Nights")] == ["first"]
    assert [row[0] for row in rows(shown, "Hosts")] == ["h0", "h1"]
    ((scenario, _, _, state, why),) = rows(shown, "Without a record")
    assert (scenario, state) == (jobs[0].scenario, "poisoned")
    assert "killed by signal 9" in why


def test_a_host_in_quarantine_is_loud(tmp_path, world):
    world.plan([a_job()])
    world.cluster.machines["h1"].driver = "999"
    world.drain()
    loud = notices(view(tmp_path, "fleet"))[0]
    assert not loud.quiet
    assert "expected 570.1, found 999" in str(loud.lines)


def test_what_is_measured_now_leads_to_its_job(tmp_path, world):
    world.plan([a_job()])
    world.drain()
    again = replace(a_job(batch_id="second"), planned_at=world.cluster.now)
    world.plan([again])
    host = next(iter(world.hosts_of_series().values())).pop()
    assert world.job_queue.claim(Start(again, host), "driver")
    ((scenario, _, where, _, _),) = rows(view(tmp_path, "fleet"), "Measured now")
    assert (scenario, where) == (again.scenario, host)


def test_a_job_shows_its_attempts_and_the_end_of_its_log(tmp_path, world):
    world.plan([a_job()])
    world.drain()
    shown = view(tmp_path, "job", job=a_job().key)
    ((number, _, _, _, how, _),) = rows(shown, "Attempts")
    assert (number, how) == ("1", AttemptEnd.STORED.value)
    (log,) = [block for block in shown.blocks if isinstance(block, Code)]
    assert log.text == "made up\n"


def test_a_job_that_is_not_there_is_reported(tmp_path, world):
    world.plan([a_job()])
    assert not notices(view(tmp_path, "job", job="none"))[0].quiet
    assert notices(view(tmp_path, "job"))[0].quiet


def test_reading_is_all_that_the_screens_do(tmp_path, world):
    world.plan([a_job()])
    before = world.states()
    view(tmp_path, "fleet")
    assert world.states() == before
    assert JobQueue(world.database).running() == []
