"""Finding jobs and their logs: by what a person types, or by the comment that asked for them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import select

from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job import KEY_DIGITS, OPEN, Job, JobState, parse_job_row
from hybridwatch.orchestration.fleet.job_queue import JobQueue

_REQUEST_BATCH: Final = re.compile(r"(\S+)#(\d+) comment (\d+)")


@dataclass(frozen=True, slots=True)
class RequestedJobs:
    """The jobs of one comment.

    Attributes:
        comment: The comment that asked.
        records: Of those that are done, below the results folder.
    """

    pull_request: int
    comment: int
    states: tuple[JobState, ...]
    records: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether one of them waits or runs."""
        return any(state in OPEN for state in self.states)

    @property
    def lost(self) -> Sequence[JobState]:
        """How those ended that have no record and will get none."""
        return [state for state in self.states if state not in {*OPEN, JobState.DONE}]


def request_batch_id(repository: str, pull_request: int, comment: int) -> str:
    """Name the batch of what a comment asks for."""
    return f"{repository}#{pull_request} comment {comment}"


def requested_jobs(job_queue: JobQueue, repository: str) -> Iterator[RequestedJobs]:
    """Give what was asked on the pull requests of a repository, the oldest comment first."""
    begin = f"{repository}#"
    wanted = select(JOB.c.night, JOB.c.state, JOB.c.record).where(
        JOB.c.night.startswith(begin, autoescape=True)
    )
    with job_queue.database.reading() as connection:
        rows = connection.execute(wanted.order_by(JOB.c.planned_at, JOB.c.key)).fetchall()
    for batch_id in dict.fromkeys(row.night for row in rows):
        if found := _REQUEST_BATCH.fullmatch(batch_id):
            mine = [row for row in rows if row.night == batch_id]
            yield RequestedJobs(
                int(found[2]),
                int(found[3]),
                tuple(JobState(row.state) for row in mine),
                tuple(row.record for row in mine if row.record),
            )


def key_like(job_queue: JobQueue, beginning: str) -> str:
    """Give the key of the one job that begins so.

    Raises:
        FleetError: None does, or several.
    """
    fits = JOB.c.key.startswith(beginning, autoescape=True)
    with job_queue.database.reading() as connection:
        found = list(connection.scalars(select(JOB.c.key).where(fits).limit(2)))
    if len(found) != 1:
        count = "several" if found else "none"
        raise FleetError(
            f"job {beginning!r}: expected a key of {KEY_DIGITS} digits, or enough of it for one "
            f"job, found {count}; see: hybridwatch fleet status --json"
        )
    return str(found[0])


def open_in(job_queue: JobQueue, batch_id: str) -> list[str]:
    """Give the keys of a batch's jobs that wait or run; a batch that does not exist is an error."""
    mine = JOB.c.night == batch_id
    with job_queue.database.reading() as connection:
        if connection.scalar(select(JOB.c.key).where(mine).limit(1)) is None:
            raise FleetError(
                f"--night {batch_id}: expected a night of the queue, found no job of it"
            )
        wanted = mine, JOB.c.state.in_([state.value for state in OPEN])
        return list(connection.scalars(select(JOB.c.key).where(*wanted)))


def find_job_log(job_queue: JobQueue, job: str, attempt: int | None) -> Path:
    """Give the log of a job, named by the beginning of its key, below the results folder.

    ``attempt`` ``None`` is the last one that left a log.

    Raises:
        FleetError: There is none.
    """
    key = key_like(job_queue, job)
    mine = [ATTEMPT.c.job == key]
    if attempt is not None:
        mine.append(ATTEMPT.c.number == attempt)
    with job_queue.database.reading() as connection:
        rows = connection.execute(
            select(ATTEMPT).where(*mine).order_by(ATTEMPT.c.number)
        ).fetchall()
    logged = [row for row in rows if row.log]
    if logged:
        return Path(logged[-1].log)
    if not rows:
        raise FleetError(f"job {key}: expected an attempt with a log, found no attempt")
    last = rows[-1]
    what = f"{last.end}: {last.reason}" if last.end else f"it runs on {last.host}"
    raise FleetError(f"job {key}: attempt {last.number} left no log: {what}")


class AttemptRecord(NamedTuple):
    """An attempt, as people look at it; ``end`` (``AttemptEnd``) is empty while it runs."""

    number: int
    host: str
    started_at: datetime
    ended_at: datetime | None
    end: str
    reason: str
    log: str


@dataclass(frozen=True, slots=True)
class JobHistory:
    """A job and all that was tried; ``record`` lies below the results folder."""

    job: Job
    state: JobState
    reason: str
    record: str
    attempts: tuple[AttemptRecord, ...]


def load_job_history(job_queue: JobQueue, key: str) -> JobHistory:
    """Give all of a job; a key without one is an error."""
    history = find_job_history(job_queue, key)
    if history is None:
        raise FleetError(f"job {key!r}: expected the key of a job, found none of it")
    return history


def find_job_history(job_queue: JobQueue, key: str) -> JobHistory | None:
    """Give all of a job; ``None`` when it was not planned."""
    with job_queue.database.reading() as connection:
        row = connection.execute(select(JOB).where(JOB.c.key == key)).first()
        if row is None:
            return None
        asked = select(*(ATTEMPT.c[name] for name in AttemptRecord._fields))
        mine = asked.where(ATTEMPT.c.job == key).order_by(ATTEMPT.c.number)
        attempts = tuple(AttemptRecord(*one) for one in connection.execute(mine))
    return JobHistory(parse_job_row(row), JobState(row.state), row.reason, row.record, attempts)
