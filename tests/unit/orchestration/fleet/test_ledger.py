"""The queue, in both databases: jobs once, claims once, records once."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import inspect, select

from hybridwatch.database.migration import NEWEST, version_of
from hybridwatch.database.schema import JOB, METADATA, PLACEMENT
from hybridwatch.errors import FleetError, RecordError, TriageError
from hybridwatch.orchestration.fleet.job import End, State, Wish
from hybridwatch.orchestration.fleet.ledger import DEADLY, Ledger
from hybridwatch.orchestration.fleet.placing import Standing, Start
from hybridwatch.orchestration.fleet.proof import Judged
from hybridwatch.orchestration.fleet.roll import ABSENT, DEAD_AFTER, PROOF_HOLDS, Node, Roll
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
def ledger(database, clock):
    made = Ledger(database, clock)
    made.make()
    return made


@pytest.fixture
def roll(database, clock, ledger):
    found = Roll(database, clock)
    found.see([Node("a", {}), Node("b", {})])
    for name in ("a", "b"):
        found.prove(name, STEADY, Judged())
    found.join("driver")
    return found


@pytest.fixture
def attempt(ledger, roll):
    """A job that runs on host a."""
    ledger.plan([a_job()], [ANY])
    return ledger.claim(Start(a_job(), "a"), "driver")


def state_of(ledger, job) -> str:
    with ledger.database.reading() as connection:
        return str(connection.scalar(select(JOB.c.state).where(JOB.c.key == job.key)))


def test_migrations_make_the_tables_that_the_schema_has(ledger) -> None:
    with ledger.database.reading() as connection:
        assert version_of(connection) == NEWEST
        found = inspect(connection)
        for table in METADATA.tables.values():
            if table.name.startswith("fleet_"):
                columns = {one["name"]: one["nullable"] for one in found.get_columns(table.name)}
                assert columns == {one.name: bool(one.nullable) for one in table.columns}
                keys = found.get_pk_constraint(table.name)["constrained_columns"]
                assert keys == [one.name for one in table.primary_key.columns]
                names = {one["name"] for one in found.get_indexes(table.name)}
                assert names == {one.name for one in table.indexes}


def test_planning_twice_adds_nothing(ledger) -> None:
    jobs = [a_job(number) for number in range(3)]
    assert ledger.plan(jobs, [ANY]) == 3
    assert ledger.plan(jobs, [ANY]) == 0
    assert ledger.plan([a_job(1, night="second")]) == 1


def test_a_job_comes_back_as_it_was_planned(ledger) -> None:
    job = a_job(wish=Wish(5.0, stand_in=True, trials=9, host="a"), priority=3)
    ledger.plan([job], [ANY])
    assert ledger.queue(()).waiting == (job,)


def test_looking_at_a_queue_that_nobody_made_makes_none(database) -> None:
    assert not Ledger(database).is_made()
    assert database.file is None or not database.file.exists()


def test_a_job_is_claimed_once(ledger, roll, attempt) -> None:
    assert attempt.number == 1
    assert ledger.claim(Start(a_job(), "b"), "other") is None


def test_a_host_gets_one_job_at_a_time(ledger, roll, attempt) -> None:
    ledger.plan([a_job(2)])
    assert ledger.claim(Start(a_job(2), "a"), "driver") is None
    ledger.end(attempt, End.FAILED, "no reason")
    assert ledger.claim(Start(a_job(2), "a"), "driver") is not None


def test_hosts_of_one_machine_get_one_job_at_a_time(ledger, roll) -> None:
    roll.see([Node(name, {"machine": "box"}) for name in ("a", "b")])
    ledger.plan([a_job(1), a_job(2)], [ANY])
    assert ledger.claim(Start(a_job(1), "a"), "driver")
    assert ledger.claim(Start(a_job(2), "b"), "driver") is None


def test_a_host_in_quarantine_gets_none(ledger, roll) -> None:
    ledger.plan([a_job()], [ANY])
    roll.set_standing("a", Standing.QUARANTINED, "slower")
    assert ledger.claim(Start(a_job(), "a"), "driver") is None


def test_a_series_is_never_stolen(ledger, roll, attempt) -> None:
    again = a_job(night="second")
    ledger.plan([again])
    assert ledger.claim(Start(again, "b"), "driver") is None
    ledger.end(attempt, End.LOST, "")
    assert ledger.claim(Start(again, "a"), "driver") is not None


def test_a_stand_in_is_placed_beside_the_keeper(ledger, roll, attempt) -> None:
    again = a_job(night="second", wish=Wish(60.0, stand_in=True))
    ledger.plan([again])
    assert ledger.claim(Start(again, "b"), "driver") is not None
    assert ledger.queue(()).fleet.keepers[again.series] == ["a", "b"]


def test_many_drivers_claim_each_job_once(ledger, roll, database) -> None:
    jobs = [a_job(number) for number in range(12)]
    roll.see([Node(f"n{number}", {}) for number in range(12)])
    for number in range(12):
        roll.prove(f"n{number}", STEADY, Judged())
    ledger.plan(jobs, [ANY])
    claimed: list[str] = []

    def claim(name: str) -> None:
        for number, job in enumerate(jobs):
            found = ledger.claim(Start(job, f"n{number}"), name)
            claimed.extend([found.job.key] if found else [])

    threads = [threading.Thread(target=claim, args=(f"d{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == sorted(job.key for job in jobs)


def test_two_drivers_give_a_new_series_one_keeper(ledger, roll) -> None:
    jobs = [a_job(1), a_job(1, builds=("cpu-0.28.0",))]
    ledger.plan(jobs, [ANY])
    threads = [
        threading.Thread(target=ledger.claim, args=(Start(job, host), host))
        for job, host in zip(jobs, "ab", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ledger.database.reading() as connection:
        assert len(connection.execute(select(PLACEMENT)).fetchall()) == 1


def test_a_job_that_leaves_no_record_is_tried_so_often(ledger, roll) -> None:
    ledger.plan([a_job()], [ANY])
    states = []
    for _ in range(3):
        attempt = ledger.claim(Start(a_job(), "a"), "driver")
        states.append(ledger.end(attempt, End.FAILED, "engine"))
    assert states == [State.WAITING, State.WAITING, State.FAILED]
    assert ledger.claim(Start(a_job(), "a"), "driver") is None


def test_a_job_that_kills_its_workers_is_set_aside(ledger, roll) -> None:
    ledger.plan([a_job()], [ANY])
    states = []
    for _ in range(DEADLY):
        attempt = ledger.claim(Start(a_job(), "a"), "driver")
        states.append(ledger.end(attempt, End.DIED, "signal 9"))
    assert states == [State.WAITING, State.WAITING, State.POISONED]


def test_a_job_whose_host_goes_away_is_no_worse_for_it(ledger, roll) -> None:
    ledger.plan([a_job()], [ANY])
    for _ in range(5):
        attempt = ledger.claim(Start(a_job(), "a"), "driver")
        assert ledger.end(attempt, End.LOST, "raylet") is State.WAITING


def test_a_record_comes_home_once(ledger, attempt) -> None:
    written: list[str] = []
    assert ledger.name_record(attempt, "records/a.json")
    assert ledger.bring_home(attempt, lambda: written.append("once"), "")
    assert not ledger.bring_home(attempt, lambda: written.append("twice"), "")
    assert written == ["once"]
    assert state_of(ledger, attempt.job) == "done"


def test_who_was_taken_for_dead_writes_nothing(ledger, attempt) -> None:
    ledger.recover(attempt, lambda _: False)
    later = ledger.claim(Start(attempt.job, "a"), "other")
    assert not ledger.name_record(attempt, "records/late.json")
    assert not ledger.bring_home(attempt, lambda: pytest.fail("written"), "")
    assert ledger.end(attempt, End.FAILED, "late") is None
    assert ledger.running() == [later]


def test_a_record_that_could_not_be_written_leaves_the_attempt_open(ledger, attempt) -> None:
    def full() -> None:
        raise RecordError("no space left")

    ledger.name_record(attempt, "records/a.json")
    with pytest.raises(RecordError, match="no space"):
        ledger.bring_home(attempt, full, "")
    assert ledger.running("driver") == [attempt]


@pytest.mark.parametrize(("is_stored", "state"), [(True, State.DONE), (False, State.WAITING)])
def test_a_crash_between_record_and_queue_is_made_good(ledger, attempt, is_stored, state) -> None:
    ledger.name_record(attempt, "records/a.json")
    assert ledger.recover(attempt, lambda name: is_stored and name == "records/a.json") is state
    assert ledger.running() == []


def test_what_waits_is_cancelled_at_once_and_what_runs_by_its_driver(ledger, attempt) -> None:
    ledger.plan([a_job(2)])
    assert ledger.cancel([a_job().key, a_job(2).key, "none"]) == 2
    assert state_of(ledger, a_job(2)) == "cancelled"
    assert ledger.unwanted() == {attempt.job.key}
    assert ledger.end(attempt, End.STOPPED, "") is State.CANCELLED


def test_jobs_go_missing_with_their_night(ledger, clock, attempt) -> None:
    ledger.plan([a_job(2)])
    ledger.explain({a_job(2).key: "its host b is absent"})
    clock.pass_(timedelta(hours=13))
    assert ledger.expire() == 1
    assert state_of(ledger, a_job(2)) == "missing"
    assert state_of(ledger, a_job()) == "running"


def test_a_driver_that_is_silent_is_buried_with_what_it_had(ledger, roll, clock, attempt) -> None:
    assert roll.bury() == []
    clock.pass_(DEAD_AFTER)
    assert roll.bury() == ["driver"]
    assert not roll.beat("driver")
    ledger.recover(attempt, lambda _: False)
    assert roll.bury() == []


def test_a_file_serves_one_driver_and_a_server_many(ledger, roll, database) -> None:
    if database.file is None:
        roll.join("second")
        return
    with pytest.raises(
        FleetError, match=r"expected no other driver, found process .* seen 0 s ago"
    ):
        roll.join("second")
    roll.leave("driver")
    roll.join("second")


def test_a_host_proves_itself_first_again_and_after_an_absence(ledger, roll, clock) -> None:
    assert not roll.ask("a", "driver")
    clock.pass_(PROOF_HOLDS)
    assert roll.ask("a", "driver")
    assert not roll.ask("a", "other")
    roll.prove("a", STEADY, Judged())
    assert not roll.ask("a", "driver")
    clock.pass_(ABSENT * 2)
    roll.see([Node("a", {})])
    assert roll.hosts()["a"].standing is Standing.NEW


def test_a_host_that_a_dead_driver_asked_is_free_again(ledger, roll, clock) -> None:
    clock.pass_(PROOF_HOLDS)
    roll.beat("driver")
    roll.ask("a", "driver")
    clock.pass_(DEAD_AFTER)
    roll.bury()
    assert roll.hosts()["a"].job == ""


def test_one_bad_proof_is_asked_again_and_a_second_is_quarantine(ledger, roll, clock) -> None:
    clock.pass_(PROOF_HOLDS)
    roll.prove("a", STEADY, Judged("slower", again=True))
    assert roll.hosts()["a"].standing is Standing.READY
    clock.pass_(timedelta(minutes=1))
    roll.prove("a", STEADY, Judged("slower"))
    assert roll.hosts()["a"].standing is Standing.QUARANTINED
    assert roll.hosts()["a"].reason == "slower"


def test_a_past_is_of_proofs_that_passed(ledger, roll, clock) -> None:
    clock.pass_(timedelta(1))
    roll.prove("a", STEADY, Judged("slower"))
    own, peers = roll.past(roll.hosts()["a"])
    assert (own, peers) == ([STEADY.kernel_s], [STEADY.kernel_s])


def test_a_host_that_nobody_knows_is_named(ledger, roll) -> None:
    with pytest.raises(FleetError, match="host 'c': expected one of a, b"):
        roll.set_standing("c", Standing.READY, "")


def test_a_queue_of_a_newer_hybridwatch_is_left_alone(ledger) -> None:
    with ledger.database.writing() as connection:
        connection.exec_driver_sql("UPDATE hybridwatch_schema SET version_num = '9001'")
    with pytest.raises(TriageError, match="upgrade hybridwatch"):
        ledger.make()
