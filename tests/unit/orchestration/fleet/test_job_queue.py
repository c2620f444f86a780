"""The queue, in both databases: jobs once, claims once, records once."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import inspect, select

from hybridwatch.database.connection import NEWEST, find_version
from hybridwatch.database.schema import JOB, METADATA, PLACEMENT
from hybridwatch.errors import FleetError, RecordError, TriageError
from hybridwatch.orchestration.fleet.cluster import HealthVerdict, Node
from hybridwatch.orchestration.fleet.hosts import (
    ABSENT,
    DEAD_AFTER,
    HEALTH_CHECK_HOLDS,
    HostRegistry,
)
from hybridwatch.orchestration.fleet.job import (
    AttemptEnd,
    HostStatus,
    JobOptions,
    JobState,
    Purpose,
    Start,
)
from hybridwatch.orchestration.fleet.job_queue import DEADLY, JobQueue
from tests.unit.orchestration.fleet.pretended import ANY, NOW, STEADY, a_job


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self):
        return self.now

    def pass_(self, time: timedelta) -> None:
        self.now += time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def job_queue(database, clock):
    made = JobQueue(database, clock)
    made.make()
    return made


@pytest.fixture
def registry(database, clock, job_queue):
    found = HostRegistry(database, clock)
    found.see([Node("a", {}), Node("b", {})])
    for name in ("a", "b"):
        found.record_health(name, STEADY, HealthVerdict())
    found.join("driver")
    return found


@pytest.fixture
def attempt(job_queue, registry):
    """A job that runs on host a."""
    job_queue.plan([a_job()], [ANY])
    return job_queue.claim(Start(a_job(), "a"), "driver")


def at_once(call, *arguments) -> None:
    """Call it in threads of their own."""
    threads = [threading.Thread(target=call, args=some) for some in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def state_of(job_queue, job) -> str:
    with job_queue.database.reading() as connection:
        return str(connection.scalar(select(JOB.c.state).where(JOB.c.key == job.key)))


def test_migrations_make_the_tables_that_the_schema_has(job_queue) -> None:
    with job_queue.database.reading() as connection:
        assert find_version(connection) == NEWEST
        found = inspect(connection)
        for table in METADATA.tables.values():
            if table.name.startswith("fleet_"):
                columns = {one["name"]: one["nullable"] for one in found.get_columns(table.name)}
                assert columns == {one.name: bool(one.nullable) for one in table.columns}
                keys = found.get_pk_constraint(table.name)["constrained_columns"]
                assert keys == [one.name for one in table.primary_key.columns]
                names = {one["name"] for one in found.get_indexes(table.name)}
                assert names == {one.name for one in table.indexes}


def test_planning_twice_adds_nothing(job_queue) -> None:
    jobs = [a_job(number) for number in range(3)]
    assert job_queue.plan(jobs, [ANY]) == 3
    assert job_queue.plan(jobs, [ANY]) == 0
    assert job_queue.plan([a_job(1, batch_id="second")]) == 1


def test_a_job_comes_back_as_it_was_planned(job_queue) -> None:
    options = JobOptions(5.0, stand_in=True, trials=9, host="a")
    job = a_job(options=options, priority=3, purpose=Purpose.CONFIRM)
    job_queue.plan([job], [ANY])
    assert job_queue.snapshot(()).waiting == (job,)


def test_looking_at_a_queue_that_nobody_made_makes_none(database) -> None:
    assert not JobQueue(database).is_made()
    assert database.file is None or not database.file.exists()


def test_a_job_is_claimed_once(job_queue, registry, attempt) -> None:
    assert attempt.number == 1
    assert job_queue.claim(Start(a_job(), "b"), "other") is None


def test_a_host_gets_one_job_at_a_time(job_queue, registry, attempt) -> None:
    job_queue.plan([a_job(2)])
    assert job_queue.claim(Start(a_job(2), "a"), "driver") is None
    job_queue.end(attempt, AttemptEnd.FAILED, "no reason")
    assert job_queue.claim(Start(a_job(2), "a"), "driver") is not None


def test_hosts_of_one_machine_get_one_job_at_a_time(job_queue, registry) -> None:
    registry.see([Node(name, {"machine": "box"}) for name in ("a", "b")])
    job_queue.plan([a_job(1), a_job(2)], [ANY])
    assert job_queue.claim(Start(a_job(1), "a"), "driver")
    assert job_queue.claim(Start(a_job(2), "b"), "driver") is None


def test_a_host_in_quarantine_gets_none(job_queue, registry) -> None:
    job_queue.plan([a_job()], [ANY])
    registry.set_status("a", HostStatus.QUARANTINED, "slower")
    assert job_queue.claim(Start(a_job(), "a"), "driver") is None


def test_a_series_is_never_stolen(job_queue, registry, attempt) -> None:
    again = a_job(batch_id="second")
    job_queue.plan([again])
    assert job_queue.claim(Start(again, "b"), "driver") is None
    job_queue.end(attempt, AttemptEnd.LOST, "")
    assert job_queue.claim(Start(again, "a"), "driver") is not None


def test_a_stand_in_is_placed_next_to_the_keeper(job_queue, registry, attempt) -> None:
    again = a_job(batch_id="second", options=JobOptions(60.0, stand_in=True))
    job_queue.plan([again])
    assert job_queue.claim(Start(again, "b"), "driver") is not None
    assert job_queue.snapshot(()).fleet.keepers[again.series] == ["a", "b"]


def test_many_drivers_claim_each_job_once(job_queue, registry, database) -> None:
    jobs = [a_job(number) for number in range(12)]
    registry.see([Node(f"n{number}", {}) for number in range(12)])
    for number in range(12):
        registry.record_health(f"n{number}", STEADY, HealthVerdict())
    job_queue.plan(jobs, [ANY])
    claimed: list[str] = []

    def claim(name: str) -> None:
        for number, job in enumerate(jobs):
            found = job_queue.claim(Start(job, f"n{number}"), name)
            claimed.extend([found.job.key] if found else [])

    at_once(claim, *((f"d{number}",) for number in range(4)))
    assert sorted(claimed) == sorted(job.key for job in jobs)


def test_two_drivers_give_a_new_series_one_keeper(job_queue, registry) -> None:
    jobs = [a_job(1), a_job(1, builds=("cpu-0.28.0",))]
    job_queue.plan(jobs, [ANY])
    at_once(
        job_queue.claim, *((Start(job, host), host) for job, host in zip(jobs, "ab", strict=True))
    )
    with job_queue.database.reading() as connection:
        assert len(connection.execute(select(PLACEMENT)).fetchall()) == 1


@pytest.mark.parametrize(
    ("end", "last"), [(AttemptEnd.FAILED, JobState.FAILED), (AttemptEnd.DIED, JobState.POISONED)]
)
def test_a_job_is_tried_so_often_and_set_aside(job_queue, registry, end, last) -> None:
    job_queue.plan([a_job()], [ANY])
    states = []
    for _ in range(DEADLY):
        attempt = job_queue.claim(Start(a_job(), "a"), "driver")
        states.append(job_queue.end(attempt, end, "engine"))
    assert states == [JobState.WAITING, JobState.WAITING, last]
    assert job_queue.claim(Start(a_job(), "a"), "driver") is None


def test_a_job_whose_host_goes_away_is_no_worse_for_it(job_queue, registry) -> None:
    job_queue.plan([a_job()], [ANY])
    for _ in range(5):
        attempt = job_queue.claim(Start(a_job(), "a"), "driver")
        assert job_queue.end(attempt, AttemptEnd.LOST, "raylet") is JobState.WAITING


def test_a_record_comes_home_once(job_queue, attempt) -> None:
    written: list[str] = []
    assert job_queue.name_record(attempt, "records/a.json")
    assert job_queue.complete(attempt, lambda: written.append("once"), "")
    assert not job_queue.complete(attempt, lambda: written.append("twice"), "")
    assert written == ["once"]
    assert state_of(job_queue, attempt.job) == "done"


def test_who_was_taken_for_dead_writes_nothing(job_queue, attempt) -> None:
    job_queue.recover(attempt, lambda _: False)
    later = job_queue.claim(Start(attempt.job, "a"), "other")
    assert not job_queue.name_record(attempt, "records/late.json")
    assert not job_queue.complete(attempt, lambda: pytest.fail("written"), "")
    assert job_queue.end(attempt, AttemptEnd.FAILED, "late") is None
    assert job_queue.running() == [later]


def test_a_record_that_could_not_be_written_leaves_the_attempt_open(job_queue, attempt) -> None:
    def full() -> None:
        raise RecordError("no space left")

    job_queue.name_record(attempt, "records/a.json")
    with pytest.raises(RecordError, match="no space"):
        job_queue.complete(attempt, full, "")
    assert job_queue.running("driver") == [attempt]


@pytest.mark.parametrize(("is_stored", "state"), [(True, JobState.DONE), (False, JobState.WAITING)])
def test_a_crash_between_record_and_queue_is_made_good(
    job_queue, attempt, is_stored, state
) -> None:
    job_queue.name_record(attempt, "records/a.json")
    assert job_queue.recover(attempt, lambda name: is_stored and name == "records/a.json") is state
    assert job_queue.running() == []


def test_what_waits_is_cancelled_at_once_and_what_runs_by_its_driver(job_queue, attempt) -> None:
    job_queue.plan([a_job(2)])
    assert job_queue.cancel([a_job().key, a_job(2).key, "none"]) == 2
    assert state_of(job_queue, a_job(2)) == "cancelled"
    assert job_queue.unwanted() == {attempt.job.key}
    assert job_queue.end(attempt, AttemptEnd.STOPPED, "") is JobState.CANCELLED


def test_jobs_go_missing_with_their_night(job_queue, clock, attempt) -> None:
    job_queue.plan([a_job(2)])
    job_queue.explain({a_job(2).key: "its host b is absent"})
    clock.pass_(timedelta(hours=13))
    assert job_queue.expire() == 1
    assert state_of(job_queue, a_job(2)) == "missing"
    assert state_of(job_queue, a_job()) == "running"


def test_a_silent_driver_expires_with_what_it_had(job_queue, registry, clock, attempt) -> None:
    assert registry.expire_dead_drivers() == []
    clock.pass_(DEAD_AFTER)
    assert registry.expire_dead_drivers() == ["driver"]
    assert not registry.heartbeat("driver")
    job_queue.recover(attempt, lambda _: False)
    assert registry.expire_dead_drivers() == []


def test_a_file_serves_one_driver_and_a_server_many(job_queue, registry, database) -> None:
    if database.file is None:
        registry.join("second")
        return
    with pytest.raises(
        FleetError, match=r"expected no other driver, found process .* seen 0 s ago"
    ):
        registry.join("second")
    registry.leave("driver")
    registry.join("second")


def test_a_host_proves_itself_first_again_and_after_an_absence(job_queue, registry, clock) -> None:
    assert not registry.reserve_host("a", "driver")
    clock.pass_(HEALTH_CHECK_HOLDS)
    assert registry.reserve_host("a", "driver")
    assert not registry.reserve_host("a", "other")
    registry.record_health("a", STEADY, HealthVerdict())
    assert not registry.reserve_host("a", "driver")
    clock.pass_(ABSENT * 2)
    registry.see([Node("a", {})])
    assert registry.hosts()["a"].standing is HostStatus.NEW


def test_a_host_that_a_dead_driver_asked_is_free_again(job_queue, registry, clock) -> None:
    clock.pass_(HEALTH_CHECK_HOLDS)
    registry.heartbeat("driver")
    registry.reserve_host("a", "driver")
    clock.pass_(DEAD_AFTER)
    registry.expire_dead_drivers()
    assert registry.hosts()["a"].job == ""


def test_one_bad_check_is_repeated_and_a_second_is_quarantine(job_queue, registry, clock) -> None:
    clock.pass_(HEALTH_CHECK_HOLDS)
    registry.record_health("a", STEADY, HealthVerdict("slower", again=True))
    assert registry.hosts()["a"].standing is HostStatus.READY
    clock.pass_(timedelta(minutes=1))
    registry.record_health("a", STEADY, HealthVerdict("slower"))
    assert registry.hosts()["a"].standing is HostStatus.QUARANTINED
    assert registry.hosts()["a"].reason == "slower"


def test_a_past_is_of_proofs_that_passed(job_queue, registry, clock) -> None:
    clock.pass_(timedelta(1))
    registry.record_health("a", STEADY, HealthVerdict("slower"))
    own, peers = registry.past(registry.hosts()["a"])
    assert (own, peers) == ([STEADY.kernel_s], [STEADY.kernel_s])


def test_a_host_that_nobody_knows_is_named(job_queue, registry) -> None:
    with pytest.raises(FleetError, match="host 'c': expected one of a, b"):
        registry.set_status("c", HostStatus.READY, "")


def test_a_queue_of_a_newer_hybridwatch_is_left_alone(job_queue) -> None:
    with job_queue.database.writing() as connection:
        connection.exec_driver_sql("UPDATE hybridwatch_schema SET version_num = '9001'")
    with pytest.raises(TriageError, match="upgrade hybridwatch"):
        job_queue.make()
