"""Measurements that are none, for a driver that is real."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hybridwatch.database.connection import Database, find_database_url
from hybridwatch.orchestration.fleet.cluster import (
    HealthReport,
    JobCommand,
    JobResult,
    Result,
    Work,
)
from hybridwatch.orchestration.fleet.driver import DriverSettings, QueueDriver
from hybridwatch.orchestration.fleet.job import HostKind, Job, JobOptions, Purpose, compute_job_key
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.orchestration.fleet.measuring import RESULTS_PLACEHOLDER, perform
from hybridwatch.records.codec import encode
from hybridwatch.records.run import Phase, Sample, Trial
from hybridwatch.system.stopping import stoppable
from tests.unit.orchestration.fleet.pretended_run import a_record
from tests.waiting import LIMIT_S

STEADY = HealthReport({"driver": "570"}, ((0.01, 0.0101), (0.01, 0.0101)))
SECONDS = "HYBRIDWATCH_PRETENDED_SECONDS"
NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
ANY = HostKind(name="any")
WISH = JobOptions(60.0)
METRIC = "contract.wrong_tokens"
BLOCKS = 20


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
    command = (*words, job.scenario, RESULTS_PLACEHOLDER, seconds, *job.builds)
    return JobCommand((), command, LIMIT_S, LIMIT_S, machine, host)


def job_result(work: JobCommand, started: datetime) -> JobResult:
    """What a measurement brings home, without a process."""
    _, _, _, scenario, _, _, *labels = work.command
    encoded = encode(a_record(scenario, labels, work.testbed_host, started))
    return JobResult(log=b"made up\n", record=encoded.record, bulk=encoded.bulk)


def a_trial(side: int, phase: Phase, started: datetime, sample: Sample) -> Trial:
    return Trial(
        index=0, side=side, phase=phase, started_at=started, duration_s=1.0, samples=(sample,)
    )


def planted(
    change: int, *, slower: float = 0.0, dumb: frozenset[str] = frozenset()
) -> Callable[[JobCommand, datetime], JobResult]:
    """Say what measurements bring home."""

    def trials(label: str, side: int, started: datetime, *, is_pair: bool) -> list[Trial]:
        is_bad = int(label.rpartition("-")[2].rpartition(".")[2]) >= change
        count = 7.0 if is_bad and not slower else 0.0
        contract = a_trial(side, Phase.CONTRACT, started, Sample(METRIC, (count,)))
        times = (0.05 * (1 + 0.002 * (at % 3)) * (1 + slower * is_bad) for at in range(BLOCKS))
        timed = (a_trial(side, Phase.PERFORMANCE, started, Sample("ttft", (one,))) for one in times)
        return [*timed] if is_pair and slower else [contract]

    def bring(work: JobCommand, started: datetime) -> JobResult:
        _, _, _, scenario, _, _, *labels = work.command
        if dumb & set(labels):
            return JobResult(b"made up\n", reason="it ended with status 2: no engine came up")
        sides = [
            trials(label, side, started, is_pair=len(labels) > 1)
            for side, label in enumerate(labels)
        ]
        every = (trial for block in zip(*sides, strict=True) for trial in block)
        numbered = tuple(replace(trial, index=index) for index, trial in enumerate(every))
        run = replace(a_record(scenario, labels, work.testbed_host, started), trials=numbered)
        encoded = encode(run)
        return JobResult(b"made up\n", encoded.record, encoded.bulk)

    return bring


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
    return STEADY if work is None else perform(work, is_wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
