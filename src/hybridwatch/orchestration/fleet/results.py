"""Puts the record of a measurement into the store, once.

The record's name stands in the queue before the record stands in the store, and the job is done in
the same transaction in which the record is written. So the name says of an attempt without a driver
whether its record was stored.
"""

from pathlib import Path

from hybridwatch.errors import FleetError, RecordError
from hybridwatch.orchestration.fleet.cluster import JobResult
from hybridwatch.orchestration.fleet.job import Job, Purpose
from hybridwatch.orchestration.fleet.job_queue import Attempt, JobQueue
from hybridwatch.records.codec import Encoded, decode
from hybridwatch.records.file_parts import RECORD_SUFFIX, build_stem
from hybridwatch.records.run import Run
from hybridwatch.records.store.files import write_all
from hybridwatch.records.store.layout import find_folder

LOGS = Path("fleet") / "logs"
"""Below the results folder."""
PROBES = Path("bisect") / "probes"
"""Below the results folder, a store of its own: what a search measures on its way is no history."""


def import_result(
    job_queue: JobQueue, results: Path, attempt: Attempt, result: JobResult
) -> Run | None:
    """Put the record of an attempt into the store, and note that its job is done.

    ``None`` comes when the attempt did not count any more, and nothing was written.

    Raises:
        RecordError: It is no record, or the store cannot take it.
        FleetError: It is of another job.
        DatabaseError: The queue cannot be reached; asking again does the rest.
    """
    store = results / PROBES if attempt.job.purpose is Purpose.PROBE else results
    run = decode(result.record, result.bulk)
    _check(attempt.job, run)
    encoded = Encoded(build_stem(run), result.record, result.bulk)
    record = find_folder(store, run) / (encoded.stem + RECORD_SUFFIX)
    log = keep_log(results, attempt, result.log)
    if not job_queue.name_record(attempt, record.relative_to(results).as_posix()):
        return None

    def write() -> None:
        try:
            write_all(store, [(run, encoded)])
        except RecordError:
            if not record.exists() or record.read_bytes() != result.record:
                raise

    return run if job_queue.complete(attempt, write, log) else None


def keep_log(results: Path, attempt: Attempt, log: bytes) -> str:
    """Keep what a measurement printed; gives the path below the results folder."""
    name = LOGS / f"{attempt.id}.txt"
    (results / LOGS).mkdir(parents=True, exist_ok=True)
    (results / name).write_bytes(log)
    return name.as_posix()


def _check(job: Job, run: Run) -> None:
    if run.scenario.id != job.scenario or len(run.builds) != len(job.builds):
        labels = " against ".join(build.label for build in run.builds)
        raise FleetError(
            f"job {job.key}: expected a record of {job.title}, found one of {run.scenario.id} "
            f"{labels}"
        )
