"""Finding jobs and their logs by what a person types."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select

from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.job import KEY_DIGITS, OPEN, End, Job, State, job_of
from hybridwatch.orchestration.fleet.ledger import Ledger


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
