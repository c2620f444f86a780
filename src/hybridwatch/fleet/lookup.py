"""Finding jobs and their logs by what a person types."""

from pathlib import Path

from sqlalchemy import select

from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import FleetError
from hybridwatch.fleet.job import KEY_DIGITS, OPEN
from hybridwatch.fleet.ledger import Ledger


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
