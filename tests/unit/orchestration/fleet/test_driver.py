"""A real driver on pretended hosts: whatever ends badly, each record comes home once."""

import random
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from hybridwatch.errors import DatabaseError, FleetError
from hybridwatch.orchestration.fleet.driver import QueueDriver, unsteady
from hybridwatch.orchestration.fleet.hosts import DEAD_AFTER
from hybridwatch.orchestration.fleet.job import (
    AttemptEnd,
    HostStatus,
    JobOptions,
    Steady,
)
from hybridwatch.records.store import list_records, read_run
from tests.builders import a_run, noisy
from tests.unit.orchestration.fleet.pretended import NOW, a_job, job_result
from tests.unit.orchestration.fleet.simulated import BED, Machine, hold_nights, timed

JOBS = [a_job(number) for number in range(9)]
STEADY_BED = BED.model_copy(update={"a_a": Steady(scenario="made-up/steady", build="cpu-0.27.1")})


def test_every_job_has_its_record_from_the_host_that_measured_it(make_world) -> None:
    world = make_world()
    world.plan(JOBS)
    summary = world.drain()
    assert summary.ends == {AttemptEnd.STORED: 9}
    runs = [read_run(path) for path in list_records(world.results)]
    measured = Counter((host, scenario) for host, scenario, _ in world.cluster.done)
    assert Counter((run.testbed.id[-2:], run.scenario.id) for run in runs) == measured
    assert set(world.states().values()) == {"done"}
    last = max(at for _, _, at in world.cluster.done)
    assert last - NOW < timedelta(minutes=3 * 10 + 2)  # side by side
    assert world.drain().ends == {}


def test_the_next_night_every_series_stays_where_it_was(make_world) -> None:
    world = make_world()
    world.plan(JOBS)
    world.drain()
    world.plan([a_job(number, batch_id="second", now=world.cluster.now) for number in range(9)])
    world.drain()
    assert all(len(hosts) == 1 for hosts in world.hosts_of_series().values())
    assert len(world.cluster.done) == 18


def test_series_of_an_absent_host_are_missing_and_told(make_world) -> None:
    world = make_world()
    world.plan(JOBS)
    world.drain()
    world.cluster.machines["h1"].away = True
    again = [a_job(number, batch_id="second", now=world.cluster.now) for number in range(9)]
    world.plan(again)
    assert world.drain().left == {"its host h1 is absent": 3}
    world.cluster.now += timedelta(hours=13)
    assert world.job_queue.expire() == 3


def test_a_stand_in_measures_a_series_of_its_own(make_world) -> None:
    world = make_world()
    options = JobOptions(60.0, stand_in=True)
    world.plan([a_job(1, options=options)])
    world.drain()
    keeper = world.cluster.done[0][0]
    world.cluster.machines[keeper].away = True
    world.plan([a_job(1, batch_id="second", options=options, now=world.cluster.now)])
    world.drain()
    testbeds = {read_run(path).testbed.id for path in list_records(world.results)}
    assert len(testbeds) == 2


@pytest.mark.parametrize("lie", [{"driver": "999"}, {"speed": 1.08}])
@pytest.mark.parametrize("seed", range(5))
def test_a_host_that_lies_is_in_quarantine_before_it_measures(make_world, lie, seed) -> None:
    world = make_world(4, seed=seed)
    world.plan([a_job(number, batch_id="before") for number in range(8)])
    world.drain()
    world.cluster.machines["h2"] = Machine(**lie)
    world.cluster.now += timedelta(hours=20)
    before = len(world.cluster.done)
    world.plan([a_job(number, now=world.cluster.now) for number in range(8)])
    world.drain()
    assert world.registry.hosts()["h2"].standing is HostStatus.QUARANTINED
    assert "h2" not in {host for host, _, _ in world.cluster.done[before:]}
    assert len(world.cluster.done) == before + 6


def test_a_host_that_becomes_slow_during_the_night_is_found(make_world) -> None:
    world = make_world(2, minutes=lambda _: 60.0)
    world.plan([a_job(number) for number in range(20)])
    driver = world.driver()
    usual = world.cluster.ended

    def ended(wait_s: float):
        if world.cluster.now > NOW + timedelta(hours=3):
            world.cluster.machines["h0"].speed = 1.08
        return usual(wait_s)

    world.cluster.ended = ended
    driver.drain()
    assert world.registry.hosts()["h0"].standing is HostStatus.QUARANTINED
    assert set(world.states().values()) == {"done", "missing"}


def test_an_a_a_goes_first_on_every_host(make_world) -> None:
    world = make_world(2)
    world.plan(JOBS, STEADY_BED)
    world.drain()
    for name in ("h0", "h1"):
        mine = [scenario for host, scenario, _ in world.cluster.done if host == name]
        assert mine.index("made-up/steady") == 0
        assert mine.count("made-up/steady") == 1
    assert len(world.cluster.done) == 11


def test_a_host_whose_a_a_dies_is_in_quarantine(make_world) -> None:
    world = make_world(2)
    world.cluster.machines["h0"].dies = frozenset({"made-up/steady"})
    world.plan(JOBS, STEADY_BED)
    world.drain()
    assert world.registry.hosts()["h0"].reason.startswith("its A/A poisoned: ")
    assert {host for host, _, _ in world.cluster.done} == {"h1"}


def test_an_a_a_that_tells_a_build_from_itself_is_named() -> None:
    side = {"ttft": noisy(0.05, n=20), "output_throughput": noisy(400.0, n=20)}
    slower = {"ttft": noisy(0.06, n=20, seed=2), "output_throughput": noisy(330.0, n=20, seed=2)}
    assert unsteady(a_run(side, side)) == ""
    assert unsteady(a_run(side, slower)).startswith("its A/A tells one build from itself: ")


def test_a_poisoned_job_is_set_aside_and_the_others_go_on(make_world) -> None:
    world = make_world()
    for machine in world.cluster.machines.values():
        machine.dies = frozenset({JOBS[0].scenario})
    world.plan(JOBS)
    summary = world.drain()
    assert summary.ends == {AttemptEnd.STORED: 8, AttemptEnd.DIED: 3}
    assert world.states()[JOBS[0].key] == "poisoned"


def test_a_cancelled_job_is_stopped(make_world) -> None:
    world = make_world(1, minutes=lambda _: 600.0)
    world.plan(JOBS[:1])
    driver = world.driver()
    usual = world.cluster.ended
    asked: list[int] = []

    def ended(wait_s: float):
        if world.cluster.now > NOW + timedelta(hours=1) and not asked:
            asked.append(world.job_queue.cancel([JOBS[0].key]))
        return usual(wait_s)

    world.cluster.ended = ended
    driver.drain()
    assert world.states() == {JOBS[0].key: "cancelled"}
    assert list_records(world.results) == []


def test_a_second_driver_on_a_file_is_refused(make_world) -> None:
    world = make_world()
    world.plan(JOBS)
    world.registry.join("first")
    with pytest.raises(FleetError, match=r"docs/database\.md"):
        world.drain()


class KilledError(BaseException):
    """Ends a driver as a kill does: no more of its lines run that matter."""


class Mortal:
    """Transactions of which one is the last thing that a driver does."""

    def __init__(self, usual, drawn: random.Random) -> None:
        self._usual, self._drawn = usual, drawn
        self._left = 0
        self.live()

    def live(self) -> None:
        """Another driver begins."""
        self._left = self._drawn.randrange(3, 25)

    @contextmanager
    def changing(self):
        self._left -= 1
        if self._left == 0 and self._drawn.random() < 0.5:
            raise KilledError
        with self._usual() as connection:
            yield connection
        if self._left == 0:
            raise KilledError


@pytest.mark.parametrize("seed", range(6))
def test_a_driver_may_die_at_any_transaction(make_world, monkeypatch, seed) -> None:
    """Each driver dies before or after one of them is kept; the next one goes on."""
    world = make_world(3, seed=seed)
    world.plan(JOBS)
    mortal = Mortal(world.database.changing, random.Random(seed))
    world.database.changing = mortal.changing
    monkeypatch.setattr(QueueDriver, "_leave", lambda _: None)  # nobody says goodbye
    deaths = 0
    while "waiting" in (states := set(world.states().values())) or "running" in states:
        try:
            world.drain()
        except KilledError:
            deaths += 1
        mortal.live()
        world.cluster.close()
        world.cluster.now += DEAD_AFTER
    assert deaths >= 3
    assert states == {"done"}
    measured = Counter(read_run(path).scenario.id for path in list_records(world.results))
    assert measured == {job.scenario: 1 for job in JOBS}


def test_a_database_that_is_away_for_a_while_loses_nothing(make_world) -> None:
    world = make_world(3)
    world.plan(JOBS)
    usual = world.database.changing
    calls = iter(range(10_000))

    def failing():
        if next(calls) % 50 in (30, 31):
            raise DatabaseError("away")
        return usual()

    world.database.changing = failing
    world.drain()
    world.database.changing = usual
    assert set(world.states().values()) == {"done"}
    assert len(list_records(world.results)) == 9
    assert "the database is back" in world.said


def test_a_database_that_stays_away_ends_the_driver(make_world) -> None:
    world = make_world(1)
    world.plan(JOBS)
    driver = world.driver()

    def away():
        raise DatabaseError("away")

    world.job_queue.make()
    world.database.changing = away
    with pytest.raises(DatabaseError):
        driver.drain()


def test_a_record_of_another_job_is_refused(make_world, monkeypatch) -> None:
    world = make_world(1)
    world.plan(JOBS[:1])
    honest = job_result

    def wrong(work, now):
        words = (*work.command[:3], "made-up/other", *work.command[4:])
        return honest(replace(work, command=words), now)

    monkeypatch.setattr("tests.unit.orchestration.fleet.simulated.job_result", wrong)
    world.drain()
    assert world.states() == {JOBS[0].key: "failed"}
    assert list_records(world.results) == []


def test_simulated_nights_end_in_time_or_say_what_is_missing(make_world) -> None:
    world = make_world(5, minutes=lambda _: 10.0)
    with timed(world.database) as seconds:
        total = hold_nights(world, 20, 3, 0.2, lambda _: None)
    assert set(total) == {"done", "missing"}
    assert total.total() == 60
    assert total["missing"] <= 2 * 8
    assert all(len(hosts) == 1 for hosts in world.hosts_of_series().values())
    assert seconds
