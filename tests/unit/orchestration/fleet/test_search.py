"""A search whose measurements are jobs: the real queue and driver, on hosts that are pretended."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import BuildError, LostProbeError
from hybridwatch.orchestration.bisect.journal import open_journal
from hybridwatch.orchestration.bisect.question import ChangeDirection
from hybridwatch.orchestration.bisect.search import BisectSearch, SearchGoal
from hybridwatch.orchestration.fleet.driver import PROBES, DriverSettings
from hybridwatch.orchestration.fleet.search import FleetMeasurer, FleetSearch
from hybridwatch.records.run import Phase
from hybridwatch.records.store import list_records
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.unit.orchestration.bisect.made_up import a_list
from tests.unit.orchestration.fleet.pretended import METRIC, NOW, planted
from tests.unit.orchestration.fleet.simulated import BED, Machine

LAST, CHANGE = 16, 11
FAR = NOW + timedelta(hours=6)


class Search:
    """One call of the verb, as far as the queue sees it."""

    def __init__(self, world, *, per_day=100, pause=None, discard=False, until=FAR):
        (scenario,) = find(home() / "scenarios", ("smoke/padded-graph-rows",))
        self.rounds = 0
        self._world, self._pause = world, pause
        world.settings = DriverSettings(look_s=60.0, wait_s=60.0, patience_s=600.0)
        journal = open_journal(world.results, scenario.id, {"ends": "0 16"}, discard=discard)
        world.job_queue.make()
        search = FleetSearch(
            job_queue=world.job_queue,
            results=world.results,
            testbed=BED,
            per_day=per_day,
            batch_id=f"bisect {journal.name()}",
            until=until,
            read=journal.runs(),
            say=world.said.append,
            pause=self._wait,
        )
        self.measurer = FleetMeasurer(scenario, home() / "models", print, search)
        goal = SearchGoal(ChangeDirection.REGRESSION, "", (METRIC,))
        self.search = BisectSearch(goal, self.measurer, journal, world.said.append, 60.0)

    def _wait(self) -> None:
        self.rounds += 1
        if self._pause is not None:
            self._pause()
        self._world.drain()

    def find(self):
        return self.search.search(a_list(LAST))


@pytest.fixture
def plant(monkeypatch):
    """Says what builds give."""

    def plant(change=CHANGE, **how):
        monkeypatch.setattr(
            "tests.unit.orchestration.fleet.simulated.job_result", planted(change, **how)
        )

    plant()
    return plant


def tried(world):
    """Builds and hosts of every attempt."""
    columns = select(JOB.c.builds, ATTEMPT.c.host, ATTEMPT.c.end)
    joined = columns.join(ATTEMPT, ATTEMPT.c.job == JOB.c.key).order_by(ATTEMPT.c.started_at)
    with world.database.reading() as connection:
        return [(row.builds, row.host, row.end) for row in connection.execute(joined)]


@pytest.mark.parametrize("change", [1, 7, 11, 16])
def test_the_build_that_broke_a_contract_is_named(make_world, plant, change) -> None:
    plant(change)
    found = Search(make_world(3)).find()
    assert found.is_found
    assert [one.key for one in found.pair] == [str(change - 1), str(change)]


def test_several_hosts_take_fewer_rounds_than_one(make_world, plant) -> None:
    rounds, hours = {}, {}
    for hosts in (3, 1):
        world = make_world({f"{hosts}-{number}": Machine() for number in range(hosts)})
        began, search = world.cluster.now, Search(world, discard=True)
        assert search.find().pair[1].key == str(CHANGE)
        rounds[hosts], hours[hosts] = search.rounds, world.cluster.now - began
        world.database.close()
        (world.results / "queue.sqlite").unlink()
    # Both ends together; then sixteen candidates by four halvings, two of them at a time.
    assert rounds == {3: 3, 1: 5}
    assert hours[3] < hours[1]


def test_a_host_that_dies_takes_no_answer_with_it(make_world, plant) -> None:
    world = make_world(3)
    usual = world.cluster.ended
    killed: list[str] = []

    def ended(wait_s: float):
        if len(world.cluster.done) == 2 and world.cluster.busy and not killed:
            killed.extend(world.cluster.busy)
            world.cluster.machines[killed[0]].away = True
        return usual(wait_s)

    world.cluster.ended = ended
    assert Search(world).find().pair[1].key == str(CHANGE)
    assert "lost" in {end for _, _, end in tried(world)}
    assert sum(one.away for one in world.cluster.machines.values()) == 1


def test_probes_are_no_history(make_world, plant) -> None:
    world = make_world(2)
    Search(world).find()
    assert list_records(world.results) == []
    stored = sum(end == "stored" for _, _, end in tried(world))
    assert len(list_records(world.results / PROBES)) == stored


def test_times_come_from_one_host(make_world, plant) -> None:
    plant(slower=0.1)
    world = make_world(3)
    found = Search(world).find()
    assert found.pair[1].key == str(CHANGE)
    timed = {host for builds, host, _ in tried(world) if "," in builds}
    assert len(timed) == 1


def test_a_timed_search_whose_host_went_says_what_it_knows_and_goes_on_later(
    make_world, plant
) -> None:
    plant(slower=0.1)
    world = make_world(2)
    gone = []

    def lose() -> None:
        timed = [host for builds, host, end in tried(world) if "," in builds and end == "stored"]
        if len(timed) == 4:
            gone.append(timed[0])
            world.cluster.machines[timed[0]].away = True
        if gone:
            world.cluster.now += timedelta(hours=1)

    search = Search(world, pause=lose)
    found = search.find()
    assert search.search.lost.endswith(f": its host {gone[0]} is absent")
    assert not search.search.may_go_on()
    assert (found.is_sure and found.place.is_found) is False
    assert str(CHANGE) in [one.key for one in found.suspects]
    world.cluster.machines[gone[0]].away = False
    again = Search(world, until=world.cluster.now + timedelta(hours=9)).find()
    assert again.pair[1].key == str(CHANGE)


def test_times_of_another_host_end_the_search(make_world, plant) -> None:
    plant(slower=0.1)
    world = make_world(1)
    search = Search(world)
    search.measurer.times("0", "16", "ttft", 20)
    host = world.cluster.machines.pop("h0")
    world.registry.set_status("h0", world.registry.hosts()["h0"].standing.RETIRED, "sold")
    world.cluster.machines["new"] = host
    with pytest.raises(LostProbeError, match=r"from one host, found testbeds .*h0, .*new; --anew"):
        search.measurer.times("0", "16", "ttft", 20)


def test_a_search_that_was_ended_goes_on_with_its_jobs(make_world, plant) -> None:
    world = make_world(2)

    def end() -> None:
        if len(world.cluster.done) > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Search(world, pause=end).find()
    world.drain()  # its jobs go on without it
    assert Search(world).find().pair[1].key == str(CHANGE)
    assert set(Counter(builds for builds, _, _ in tried(world)).values()) == {1}


def test_a_repeated_measurement_is_another_job_and_a_read_one_is_not_read_again(
    make_world, plant
) -> None:
    measurer = Search(make_world(1)).measurer
    runs = [measurer.session(("0",), {Phase.CONTRACT}).id for _ in range(3)]
    assert len(set(runs)) == 3


def test_a_day_has_so_many_and_the_next_one_goes_on(make_world, plant) -> None:
    world = make_world(1)
    search = Search(world, per_day=4)
    found = search.find()
    assert "the 4 jobs of a day ([confirm] per_day) are spent" in search.search.lost
    assert not found.is_found
    assert str(CHANGE) in [one.key for one in found.suspects]
    world.cluster.now += timedelta(days=1)
    later = Search(world, per_day=4, until=world.cluster.now + timedelta(hours=6))
    assert later.find().pair[1].key == str(CHANGE)


def test_a_probe_that_nobody_makes_ends_the_search_and_is_cancelled(make_world, plant) -> None:
    world = make_world(0)

    def wait() -> None:
        world.cluster.now += timedelta(hours=1)

    search = Search(world, pause=wait)
    world.drain = lambda: None
    with pytest.raises(LostProbeError, match=r"is still waiting: no driver has run it"):
        search.find()
    assert "cancelled" in world.states().values()


def test_an_engine_that_does_not_come_up_is_left_out_and_named(make_world, plant) -> None:
    plant(dumb=frozenset({"10", "12"}))
    found = Search(make_world(3)).find()
    assert [one.key for one in found.suspects] == ["10", "11"]
    assert {one.outcome.state.value for one in found.measured if one.at in found.place.skipped} == {
        "cannot be had"
    }


def test_an_end_that_cannot_be_had_ends_the_search(make_world, plant) -> None:
    plant(dumb=frozenset({"16"}))
    with pytest.raises(BuildError, match=r"16 title: job \w+ failed: it ended with status 2"):
        Search(make_world(1)).find()


def test_what_is_no_longer_likely_is_cancelled(make_world, plant) -> None:
    world = make_world(3)
    measurer = Search(world).measurer
    measurer.expect([lambda: "4", lambda: "8"])
    measurer.expect([lambda: "8", lambda: "12"])
    assert Counter(world.states().values()) == {"waiting": 2, "cancelled": 1}
    measurer.search.drop()
    assert set(world.states().values()) == {"cancelled"}


def test_contracts_have_no_host_of_their_own(make_world, plant) -> None:
    world = make_world(3)
    Search(world).find()
    assert world.job_queue.snapshot(()).fleet.keepers == {}
    assert len({host for _, host, _ in tried(world)}) == 3


def test_a_quarantined_host_measures_nothing_ahead(make_world, plant) -> None:
    world = make_world(3)
    world.cluster.machines["h1"] = replace(Machine(), driver="999")
    search = Search(world)
    assert search.measurer.at_once == 1  # nobody has seen a host yet
    search.find()
    assert search.measurer.at_once == 2
