"""Measurements that are none, for a driver that is real."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hybridwatch.database.connection import Database
from hybridwatch.database.url import find_database_url
from hybridwatch.orchestration.fleet.cluster import (
    HealthCheck,
    HealthReport,
    JobCommand,
    JobResult,
    Result,
    Work,
)
from hybridwatch.orchestration.fleet.driver import DriverSettings, QueueDriver
from hybridwatch.orchestration.fleet.job import HostKind, Job, JobOptions, Purpose, compute_job_key
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.measuring import RESULTS_WORD, perform
from hybridwatch.records.codec import encode
from hybridwatch.system.stopping import stoppable
from tests.unit.orchestration.fleet.pretended_run import a_record
from tests.waiting import LIMIT_S

STEADY = HealthReport({"driver": "570"}, ((0.01, 0.0101), (0.01, 0.0101)))
SECONDS = "HYBRIDWATCH_PRETENDED_SECONDS"
NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ANY = HostKind(name="any")
WISH = JobOptions(60.0)


def a_job(
    number: int = 1,
    *,
    scenario: str = "",
    batch_id: str = "first",
    testbed: str = "any",
    builds: tuple[str, ...] = ("cpu-0.27.1", "cpu-0.28.0"),
    options: JobOptions = WISH,
    now: datetime = NOW,
    **changes: Any,
) -> Job:
    """A job; the same number gives the same scenario. Changes are fields that do not name it."""
    named = scenario or f"made-up/scenario-{number:03}"
    job = Job(
        key=compute_job_key(named, builds, f"{testbed}{options.host}", batch_id),
        batch_id=batch_id,
        purpose=Purpose.MEASURE,
        scenario=named,
        builds=builds,
        testbed=testbed,
        options=options,
        priority=0,
        planned_at=now,
        until=now + timedelta(hours=12),
    )
    return replace(job, **changes)


def measurement(job: Job, host: str, machine: str) -> JobCommand:
    """Say how a job is pretended to be measured."""
    seconds = os.environ.get(SECONDS, "0")
    words = (sys.executable, "-m", "tests.unit.orchestration.fleet.pretended_run")
    command = (*words, job.scenario, RESULTS_WORD, seconds, *job.builds)
    return JobCommand((), command, LIMIT_S, LIMIT_S, machine, host)


def job_result(work: JobCommand, started: datetime) -> JobResult:
    """What a measurement brings home, without a process."""
    _, _, _, scenario, _, _, *labels = work.command
    encoded = encode(a_record(scenario, labels, work.testbed_host, started))
    return JobResult(log=b"made up\n", record=encoded.record, bulk=encoded.bulk)


def main(address: str, results: str) -> None:
    """Drain a queue on a Ray cluster, as ``hybridwatch fleet run`` does, with pretended runs."""
    from hybridwatch.orchestration.fleet.ray_cluster import RayCluster

    folder = Path(results)
    job_queue = JobQueue(Database(find_database_url(folder)))
    settings = DriverSettings(look_s=2.0, patience_s=120.0)
    cluster = RayCluster(address, do)
    with stoppable():
        QueueDriver(job_queue, cluster, folder, print, settings, measurement).drain()


def do(work: Work, is_wanted: Callable[[], bool] = lambda: True) -> Result:
    """Show a steady host; measure in a process."""
    return STEADY if isinstance(work, HealthCheck) else perform(work, is_wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
