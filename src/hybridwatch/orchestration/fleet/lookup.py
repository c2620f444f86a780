"""Finds jobs and their logs, and plans the jobs that confirm an alert, halving what is left."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import func, or_, select

from hybridwatch.analysis.alerts import Alert, Status
from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job import (
    KEY_DIGITS,
    OPEN,
    Job,
    JobState,
    Purpose,
    compute_job_key,
    parse_job_row,
)
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.records.identity import LONGEST_LINE
from hybridwatch.records.store.layout import read_run_id

_REQUEST_BATCH: Final = re.compile(r"(\S+)#(\d+) comment (\d+)")


@dataclass(frozen=True, slots=True)
class RequestedJobs:
    """The jobs of one comment; ``records`` lie below the results folder."""

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
    """List the jobs requested on a repository's pull requests, the oldest comment first."""
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
    """Give the key of the one job that begins so."""
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
    """Find the log of a job, by the beginning of its key; without a number the last one."""
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
        columns = select(*(ATTEMPT.c[name] for name in AttemptRecord._fields))
        mine = columns.where(ATTEMPT.c.job == key).order_by(ATTEMPT.c.number)
        attempts = tuple(AttemptRecord(*one) for one in connection.execute(mine))
    return JobHistory(parse_job_row(row), JobState(row.state), row.reason, row.record, attempts)


_PAIR: Final = 2
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """A job of two builds, and the run that it gave; empty as long as it gave none."""

    job: Job
    run_id: str


def known_pairs(job_queue: JobQueue) -> list[PlannedPair]:
    """Give every job of two builds that is no A/A and no search's."""
    wanted = select(JOB).where(JOB.c.purpose.not_in([Purpose.A_A.value, Purpose.PROBE.value]))
    with job_queue.database.reading() as connection:
        rows = connection.execute(wanted.order_by(JOB.c.planned_at)).fetchall()
    found = [
        PlannedPair(parse_job_row(row), read_run_id(Path(row.record)) if row.record else "")
        for row in rows
    ]
    return [one for one in found if len(one.job.builds) == _PAIR]


def find_confirmations(
    alerts: Sequence[Alert], known: Sequence[PlannedPair], order: Sequence[str], now: datetime
) -> list[Job]:
    """Plan the next confirming job of each open alert, the most urgent first.

    ``order`` has the builds, the oldest first. There is no job while an earlier one of the alert is
    open, and none for what this queue did not measure.
    """
    unanswered = [alert for alert in alerts if alert.status is Status.OPEN]
    bad = {alert.bad.run_id for alert in unanswered}
    by_run = {one.run_id: one.job for one in known if one.run_id}
    jobs = []
    for alert in unanswered:
        job = by_run.get(alert.bad.run_id)
        batch_id = f"confirm {alert.subject.key[:8]}"
        if job is None or (job.purpose is Purpose.CONFIRM and job.batch_id != batch_id):
            continue  # what lies between two builds is another alert's search
        mine = {one.job.builds: one.run_id for one in known if one.job.batch_id == batch_id}
        builds = _next(job.builds, mine, order, bad)
        if builds is not None and builds not in mine:
            jobs.append(_again(job, builds, batch_id, now))
    return jobs


def left_today(job_queue: JobQueue, per_day: int) -> int:
    """How many more jobs alerts and searches may add today; those cancelled unbegun are free."""
    is_wanted = JOB.c.purpose.in_([Purpose.CONFIRM.value, Purpose.PROBE.value])
    recent = JOB.c.planned_at > job_queue.clock() - _DAY
    counts = or_(JOB.c.attempt > 0, JOB.c.state != JobState.CANCELLED.value)
    wanted = select(func.count()).select_from(JOB).where(is_wanted, recent, counts)
    with job_queue.database.reading() as connection:
        return max(0, per_day - int(connection.scalar(wanted) or 0))


def _next(
    pair: tuple[str, ...], mine: Mapping[tuple[str, ...], str], order: Sequence[str], bad: set[str]
) -> tuple[str, ...] | None:
    """Give the builds to measure next: the pair itself, then the middle of those between."""
    if pair not in mine:
        return pair
    first, last = pair
    if mine[pair] not in bad or first not in order or last not in order:
        return None
    good, wrong = order.index(first), order.index(last)
    for place in range(good + 1, wrong):
        run = mine.get((first, order[place]))
        if run == "":
            return None
        if run in bad:
            wrong = min(wrong, place)
        elif run is not None:
            good = max(good, place)
    return (first, order[(good + wrong) // 2]) if wrong - good > 1 else None


def _again(job: Job, builds: tuple[str, ...], batch_id: str, now: datetime) -> Job:
    # A build from before is no news of the line that it once was the newest of.
    line = job.options.line
    if builds != job.builds:  # a line of the label: switches keep one apart by themselves
        name = re.split(r"[~+]", builds[-1], maxsplit=1)[0]
        line = re.sub(r"[^A-Za-z0-9._+-]", "-", name)[:LONGEST_LINE]
    return replace(
        job,
        options=replace(job.options, line=line),
        key=compute_job_key(job.scenario, builds, job.testbed, batch_id),
        batch_id=batch_id,
        purpose=Purpose.CONFIRM,
        builds=builds,
        planned_at=now,
        until=now + (job.until - job.planned_at),
    )
