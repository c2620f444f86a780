"""Finding jobs and their logs: by what a person types, or by the comment that asked for them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy import select

from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job import KEY_DIGITS, OPEN, End, Job, State, job_of
from hybridwatch.orchestration.fleet.ledger import Ledger

_NIGHT: Final = re.compile(r"(\S+)#(\d+) comment (\d+)")


@dataclass(frozen=True, slots=True)
class RequestedJobs:
    """The jobs of one comment.

    Attributes:
        pull_request: Its number.
        comment: The comment that asked.
        states: Of each job.
        records: Of those that are done, below the results folder.
    """

    pull_request: int
    comment: int
    states: tuple[State, ...]
    records: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether one of them waits or runs."""
        return any(state in OPEN for state in self.states)

    @property
    def lost(self) -> Sequence[State]:
        """How those ended that have no record and will get none."""
        return [state for state in self.states if state not in {*OPEN, State.DONE}]


def night_of(repository: str, pull_request: int, comment: int) -> str:
    """Name the night of what a comment asks for."""
    return f"{repository}#{pull_request} comment {comment}"


def requested_jobs(ledger: Ledger, repository: str) -> Iterator[RequestedJobs]:
    """Give what was asked on the pull requests of a repository, the oldest comment first."""
    begin = f"{repository}#"
    wanted = select(JOB.c.night, JOB.c.state, JOB.c.record).where(
        JOB.c.night.startswith(begin, autoescape=True)
    )
    with ledger.database.reading() as connection:
        rows = connection.execute(wanted.order_by(JOB.c.planned_at, JOB.c.key)).fetchall()
    for night in dict.fromkeys(row.night for row in rows):
        if found := _NIGHT.fullmatch(night):
            mine = [row for row in rows if row.night == night]
            yield RequestedJobs(
                int(found[2]),
                int(found[3]),
                tuple(State(row.state) for row in mine),
                tuple(row.record for row in mine if row.record),
            )


def key_like(ledger: Ledger, beginning: str) -> str:
    """Give the key of the one job that begins so.

    Raises:
        FleetError: None does, or several.
    """
    fits = JOB.c.key.startswith(beginning, autoescape=True)
    with ledger.database.reading() as connection:
        found = list(connection.scalars(select(JOB.c.key).where(fits).limit(2)))
    if len(found) != 1:
        count = "several" if found else "none"
        raise FleetError(
            f"job {beginning!r}: expected a key of {KEY_DIGITS} digits, or enough of it for one "
            f"job, found {count}; see: hybridwatch fleet status --json"
        )
    return str(found[0])


def open_in(ledger: Ledger, night: str) -> list[str]:
    """Give the keys of a night's jobs that wait or run.

    Raises:
        FleetError: There is no such night.
    """
    mine = JOB.c.night == night
    with ledger.database.reading() as connection:
        if connection.scalar(select(JOB.c.key).where(mine).limit(1)) is None:
            raise FleetError(f"--night {night}: expected a night of the queue, found no job of it")
        wanted = mine, JOB.c.state.in_([state.value for state in OPEN])
        return list(connection.scalars(select(JOB.c.key).where(*wanted)))


def log_of(ledger: Ledger, job: str, attempt: int | None) -> Path:
    """Give the log of a job, below the results folder.

    Args:
        ledger: The queue.
        job: The beginning of its key.
        attempt: Which; ``None`` for the last one that left a log.

    Raises:
        FleetError: There is none.
    """
    key = key_like(ledger, job)
    mine = [ATTEMPT.c.job == key]
    if attempt is not None:
        mine.append(ATTEMPT.c.number == attempt)
    with ledger.database.reading() as connection:
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


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt, as people look at it; ``end`` is ``None`` while it runs."""

    number: int
    host: str
    started_at: datetime
    ended_at: datetime | None
    end: End | None
    reason: str
    log: str


@dataclass(frozen=True, slots=True)
class Story:
    """A job and all that was tried; ``record`` lies below the results folder."""

    job: Job
    state: State
    reason: str
    record: str
    attempts: tuple[Tried, ...]


def story_of(ledger: Ledger, key: str) -> Story:
    """Tell all of a job.

    Raises:
        FleetError: There is no job of this key.
    """
    story = find_story(ledger, key)
    if story is None:
        raise FleetError(f"job {key!r}: expected the key of a job, found none of it")
    return story


def find_story(ledger: Ledger, key: str) -> Story | None:
    """Tell all of a job; ``None`` when nobody planned it."""
    with ledger.database.reading() as connection:
        row = connection.execute(select(JOB).where(JOB.c.key == key)).first()
        if row is None:
            return None
        mine = select(ATTEMPT).where(ATTEMPT.c.job == key).order_by(ATTEMPT.c.number)
        attempts = tuple(
            Tried(
                number=one.number,
                host=one.host,
                started_at=one.started_at,
                ended_at=one.ended_at,
                end=End(one.end) if one.end else None,
                reason=one.reason,
                log=one.log,
            )
            for one in connection.execute(mine)
        )
    return Story(job_of(row), State(row.state), row.reason, row.record, attempts)
