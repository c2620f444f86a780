"""A fleet with a real engine: two hosts that share this machine measure in turn.

The hosts are threads of one process, or nodes of a Ray cluster.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import select

from hybridwatch.analysis.report import build_report
from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.database.schema import ATTEMPT
from hybridwatch.orchestration.bisect.candidates import list_builds
from hybridwatch.orchestration.bisect.journal import open_journal
from hybridwatch.orchestration.bisect.question import ChangeDirection
from hybridwatch.orchestration.bisect.search import BisectSearch, SearchGoal
from hybridwatch.orchestration.fleet.cluster import Cluster, JobCommand, Node, Result, Work
from hybridwatch.orchestration.fleet.driver import PROBES, DriverSettings, QueueDriver
from hybridwatch.orchestration.fleet.job import AttemptEnd, HostKind
from hybridwatch.orchestration.fleet.job import JobOptions as JobWish
from hybridwatch.orchestration.fleet.job_queue import JobQueue, utc_now
from hybridwatch.orchestration.fleet.measuring import LocalCluster, build_job_command, perform
from hybridwatch.orchestration.fleet.search import (
    FleetBuildFactory,
    FleetMeasurer,
    FleetSearch,
)
from hybridwatch.records.store import list_records, read_run
from hybridwatch.scenarios.load import find
from hybridwatch.system.home import home
from tests.unit.orchestration.fleet.on_ray import Nodes
from tests.unit.orchestration.fleet.pretended import STEADY, a_job

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,  # four whole runs: a second look at what the pretended ones show
    pytest.mark.timeout(3600),
]
BUILDS = ("cpu-0.27.1", "cpu-0.27.1~padded-rows-prefilling")
SCENARIO = "smoke/padded-graph-rows"
HOSTS = ("h0", "h1")


def do(work: Work, is_wanted=lambda: True) -> Result:
    """Measure as a host does; a proof of times would fail on a machine that runs other tests."""
    return perform(work, is_wanted) if isinstance(work, JobCommand) else STEADY


def measurement(job, host: str, machine: str) -> JobCommand:
    """What is not installed here, `make engine` installs: no test makes an environment again."""
    return replace(build_job_command(job, host, machine), prepare=())


@contextmanager
def in_one_process() -> Iterator[Cluster]:
    """Hosts without Ray."""
    yield LocalCluster([Node(name, {"own": name, "machine": "this"}) for name in HOSTS], do)


@contextmanager
def on_ray() -> Iterator[Cluster]:
    """Hosts of a Ray cluster."""
    pytest.importorskip("ray", reason="Ray is an extra: make fleet")
    from hybridwatch.orchestration.fleet.ray_cluster import RayCluster

    nodes = Nodes(len(HOSTS), machine="this")
    cluster = RayCluster(nodes.address, do)
    try:
        yield cluster
    finally:
        cluster.close()
        nodes.stop()


@pytest.fixture(scope="module", params=[in_one_process, on_ray], ids=lambda one: one.__name__)
def drained(request, sides, tmp_path_factory):
    """One job for each of two hosts, measured."""
    results = tmp_path_factory.mktemp("results")
    database = Database(find_database_url(results))
    job_queue = JobQueue(database)
    job_queue.make()
    options = JobWish(30.0, trials=7)
    beds = [HostKind(name=name, labels={"own": name}) for name in HOSTS]
    jobs = [
        a_job(scenario=SCENARIO, builds=BUILDS, testbed=bed.name, options=options, now=utc_now())
        for bed in beds
    ]
    job_queue.plan(jobs, beds)
    with request.param() as cluster:
        summary = QueueDriver(
            job_queue, cluster, results, print, DriverSettings(), measurement
        ).drain()
    assert summary.ends == {AttemptEnd.STORED: 2}
    return results, database


def test_both_hosts_have_a_record_of_their_own(drained) -> None:
    results, _ = drained
    testbeds = [read_run(path).testbed.id for path in list_records(results)]
    assert sorted(one.rpartition("-")[2] for one in testbeds) == sorted(HOSTS)


def test_they_took_turns(drained) -> None:
    _, database = drained
    with database.reading() as connection:
        rows = connection.execute(select(ATTEMPT).order_by(ATTEMPT.c.started_at)).fetchall()
    assert all(earlier.ended_at <= later.started_at for earlier, later in pairwise(rows))


@pytest.mark.parametrize("hosts", [in_one_process, on_ray], ids=lambda one: one.__name__)
def test_a_search_is_answered_by_hosts(sides, tmp_path, hosts) -> None:
    """The contracts of both ends are two jobs, measured by whoever drains the queue."""
    (scenario,) = find(home() / "scenarios", (SCENARIO,))
    database = Database(find_database_url(tmp_path))
    job_queue = JobQueue(database)
    job_queue.make()
    journal = open_journal(tmp_path, SCENARIO, {"ends": " ".join(BUILDS)}, discard=False)

    def drain() -> None:
        with hosts() as cluster:
            settings = DriverSettings(patience_s=0.0)
            QueueDriver(job_queue, cluster, tmp_path, print, settings, measurement).drain()

    search = FleetSearch(
        job_queue=job_queue,
        results=tmp_path,
        testbed=HostKind(name="any"),
        per_day=10,
        batch_id=f"bisect {journal.name()}",
        until=utc_now() + timedelta(hours=1),
        read=journal.runs(),
        say=print,
        pause=drain,
    )
    measurer = FleetMeasurer(scenario, home() / "models", print, search)
    bisect = BisectSearch(
        SearchGoal(ChangeDirection.REGRESSION, "", ()), measurer, journal, print, 3600.0
    )
    factory = FleetBuildFactory(home(), None, "", False, print)
    found = bisect.search(list_builds(factory, *BUILDS))
    assert found.is_found
    assert found.question is not None
    assert found.question.metric == "contract.padded_rows_prefilling"
    assert len(list_records(tmp_path / PROBES)) == 2


def test_each_verdict_is_that_of_a_run_by_hand(drained) -> None:
    """The build without its fix breaks the contract, the other one keeps it."""
    results, _ = drained
    for path in list_records(results):
        report = build_report(read_run(path))
        (broken,) = [
            one for one in report.comparisons if one.metric.id == "contract.padded_rows_prefilling"
        ]
        assert broken.verdict.is_bad_news
        assert broken.baseline is not None
        assert broken.baseline.center == 0
