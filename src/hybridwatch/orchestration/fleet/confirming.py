"""What a suspected change asks for: the same pair again, then the builds between.

Each answer is a job like any other, on the host that keeps the series. So a search for the build
that brought a change goes on from night to night, half of what is left each time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import func, or_, select

from hybridwatch.analysis.alerts import Alert, Status
from hybridwatch.database.schema import JOB
from hybridwatch.orchestration.fleet.job import (
    Job,
    JobState,
    Purpose,
    compute_job_key,
    parse_job_row,
)
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from hybridwatch.records.identity import LONGEST_LINE
from hybridwatch.records.store.layout import read_run_id

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


def asked(
    alerts: Sequence[Alert], known: Sequence[PlannedPair], order: Sequence[str], now: datetime
) -> list[Job]:
    """Give the next job of each alert that has no answer.

    Alerts come the most urgent first; ``order`` has the builds, the oldest first, to say which lie
    between two. There is at most one job for each alert; none while an earlier one is open, and
    none for what this queue did not measure.
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
    """How many more jobs may be asked for by alerts and searches, of those that a day has.

    What was cancelled before it began does not count.
    """
    asked_for = JOB.c.purpose.in_([Purpose.CONFIRM.value, Purpose.PROBE.value])
    recent = JOB.c.planned_at > job_queue.clock() - _DAY
    counts = or_(JOB.c.attempt > 0, JOB.c.state != JobState.CANCELLED.value)
    wanted = select(func.count()).select_from(JOB).where(asked_for, recent, counts)
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
    line = job.options.line if builds == job.builds else _own_line(builds[-1])
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


def _own_line(label: str) -> str:
    """Make a line of a label: switches keep one apart by themselves."""
    name = re.split(r"[~+]", label, maxsplit=1)[0]
    return re.sub(r"[^A-Za-z0-9._+-]", "-", name)[:LONGEST_LINE]
