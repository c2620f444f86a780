"""The state of a queue, for the page, for ``status`` and as JSON."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

from sqlalchemy import Connection, func, select

from hybridwatch.database.schema import ATTEMPT, HOST, JOB, PLACEMENT, PROOF
from hybridwatch.orchestration.fleet.job import AttemptEnd, HostStatus, Job, JobState, parse_job_row
from hybridwatch.orchestration.fleet.job_queue import JobQueue

SEEN: Final = timedelta(minutes=2)
"""A host that was seen within this time is there."""
_TROUBLES: Final = (JobState.FAILED, JobState.POISONED, JobState.MISSING)
_NEWEST_TROUBLES: Final = 100
_NEWEST_BATCHES: Final = 14


@dataclass(frozen=True, slots=True)
class BatchOverview:
    """A round of measuring: how many of its jobs stand how."""

    name: str
    planned_at: datetime
    states: Mapping[JobState, int]

    @property
    def open(self) -> int:
        """How many are still to come."""
        return self.states.get(JobState.WAITING, 0) + self.states.get(JobState.RUNNING, 0)


@dataclass(frozen=True, slots=True)
class Underway:
    """A job that is measured now; ``ends_at`` as its series took before, if it did."""

    job: Job
    host: str
    since: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """A job that will have no record, and why; ``log`` of its last attempt, if there is one."""

    job: Job
    state: JobState
    reason: str
    log: str


@dataclass(frozen=True, slots=True)
class HostLine:
    """A host as people ask for it; ``proven_at``, ``a_a``, ``kernel_s`` are of its last check."""

    name: str
    standing: HostStatus
    is_there: bool
    reason: str
    since: datetime
    seen_at: datetime
    series: int
    job: str
    proven_at: datetime | None = None
    a_a: float | None = None
    kernel_s: float | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything at one moment.

    Attributes:
        batches: The newest first; ``troubles`` are theirs. ``underway`` has the longest first.
        waiting: How many jobs wait, by reason; empty for those whose turn will come.
        ends_at: When the last job that can be measured will be, going by earlier ones; ``None``
            when nothing is open, or nothing was ever measured.
    """

    at: datetime
    batches: tuple[BatchOverview, ...] = ()
    underway: tuple[Underway, ...] = ()
    waiting: Mapping[str, int] | None = None
    troubles: tuple[Trouble, ...] = ()
    hosts: tuple[HostLine, ...] = ()
    ends_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """Give it as ``hybridwatch fleet status --json`` prints it."""
        return {
            "at": self.at.isoformat(),
            "ends_at": _iso(self.ends_at),
            "nights": [
                {"night": one.name, "planned_at": one.planned_at.isoformat()}
                | {state.value: one.states.get(state, 0) for state in JobState}
                for one in self.batches
            ],
            "running": [
                _about(one.job)
                | {"host": one.host, "since": _iso(one.since), "ends_at": _iso(one.ends_at)}
                for one in self.underway
            ],
            "waiting": dict(self.waiting or {}),
            "troubles": [
                _about(one.job) | {"state": one.state.value, "reason": one.reason, "log": one.log}
                for one in self.troubles
            ],
            "hosts": [host_json(one) for one in self.hosts],
        }


def host_json(line: HostLine) -> dict[str, Any]:
    """Give a host as the verbs print it."""
    times = {name: _iso(getattr(line, name)) for name in ("since", "seen_at", "proven_at")}
    return {**asdict(line), "standing": line.standing.value, **times}


def read_overview(job_queue: JobQueue) -> Overview:
    """Read how a queue stands; of one that was never made, nothing."""
    now = job_queue.clock()
    if not job_queue.is_made():
        return Overview(now)
    with job_queue.database.reading() as connection:
        times = _times(connection)
        underway = tuple(_underway(connection, times))
        waiting = select(JOB.c.reason, func.count().label("n")).where(
            JOB.c.state == JobState.WAITING.value
        )
        rows = connection.execute(waiting.group_by(JOB.c.reason))
        reasons = {row.reason: row.n for row in rows}
        return Overview(
            at=now,
            batches=tuple(_batches(connection)),
            underway=underway,
            waiting=reasons,
            troubles=tuple(_troubles(connection)),
            hosts=tuple(_hosts(connection, now)),
            ends_at=_end(connection, now, times, underway),
        )


def _times(connection: Connection) -> dict[str, float]:
    """How long series took, seconds."""
    stored = ATTEMPT.c.end == AttemptEnd.STORED.value, ATTEMPT.c.ended_at.is_not(None)
    columns = JOB.c.series, ATTEMPT.c.started_at, ATTEMPT.c.ended_at
    joined = select(*columns).join(JOB, JOB.c.key == ATTEMPT.c.job).where(*stored)
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in connection.execute(joined.order_by(ATTEMPT.c.ended_at.desc()).limit(2000)):
        found[row.series].append((row.ended_at - row.started_at).total_seconds())
    return {name: median(times) for name, times in found.items()}


def _batches(connection: Connection) -> Iterator[BatchOverview]:
    first = func.min(JOB.c.planned_at).label("first")
    newest = select(JOB.c.night, first).group_by(JOB.c.night).order_by(first.desc())
    rows = connection.execute(newest.limit(_NEWEST_BATCHES)).fetchall()
    counted = select(JOB.c.night, JOB.c.state, func.count().label("n")).where(
        JOB.c.night.in_([row.night for row in rows])
    )
    states: defaultdict[str, dict[JobState, int]] = defaultdict(dict)
    for row in connection.execute(counted.group_by(JOB.c.night, JOB.c.state)):
        states[row.night][JobState(row.state)] = row.n
    for row in rows:
        yield BatchOverview(row.night, row.first, states[row.night])


def _underway(connection: Connection, times: Mapping[str, float]) -> Iterator[Underway]:
    running = JOB.c.state == JobState.RUNNING.value, ATTEMPT.c.end == ""
    joined = select(JOB, ATTEMPT.c.host, ATTEMPT.c.started_at).join(
        ATTEMPT, ATTEMPT.c.job == JOB.c.key
    )
    for row in connection.execute(joined.where(*running).order_by(ATTEMPT.c.started_at)):
        seconds = times.get(row.series)
        end = None if seconds is None else row.started_at + timedelta(seconds=seconds)
        yield Underway(parse_job_row(row), row.host, row.started_at, end)


def _troubles(connection: Connection) -> Iterator[Trouble]:
    log = (
        select(ATTEMPT.c.log)
        .where(ATTEMPT.c.job == JOB.c.key, ATTEMPT.c.number == JOB.c.attempt)
        .scalar_subquery()
    )
    bad = JOB.c.state.in_([state.value for state in _TROUBLES])
    newest = select(JOB, log.label("log")).where(bad).order_by(JOB.c.planned_at.desc(), JOB.c.key)
    for row in connection.execute(newest.limit(_NEWEST_TROUBLES)):
        yield Trouble(parse_job_row(row), JobState(row.state), row.reason, row.log or "")


def _hosts(connection: Connection, now: datetime) -> Iterator[HostLine]:
    kept = Counter(_keepers(connection).values())
    last = {row.host: row for row in connection.execute(select(PROOF).order_by(PROOF.c.at))}
    for row in connection.execute(select(HOST).order_by(HOST.c.name)):
        proof = last.get(row.name)
        yield HostLine(
            name=row.name,
            standing=HostStatus(row.state),
            is_there=now - row.seen_at < SEEN,
            reason=row.reason,
            since=row.since,
            seen_at=row.seen_at,
            series=kept[row.name],
            job=row.job,
            proven_at=proof.at if proof else None,
            a_a=proof.a_a if proof else None,
            kernel_s=proof.kernel_s if proof else None,
        )


def _keepers(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(PLACEMENT).order_by(PLACEMENT.c.since.desc()))
    return {row.series: row.host for row in rows}


def _end(
    connection: Connection, now: datetime, times: Mapping[str, float], underway: Sequence[Underway]
) -> datetime | None:
    """Add up what each host has before it; series without a keeper go to the first free host."""
    if not times:
        return None
    usual = median(times.values())
    keepers = _keepers(connection)
    load: defaultdict[str, float] = defaultdict(float)
    for one in underway:
        seconds = times.get(one.job.series, usual)
        load[one.host] += max(0.0, seconds - (now - one.since).total_seconds())
    # One that says why it waits can not be measured, as things are.
    able = JOB.c.state == JobState.WAITING.value, JOB.c.reason == ""
    unkept = 0.0
    for row in connection.execute(select(JOB.c.series).where(*able)):
        seconds = times.get(row.series, usual)
        if row.series in keepers:
            load[keepers[row.series]] += seconds
        else:
            unkept += seconds
    ready = HOST.c.state == HostStatus.READY.value
    hosts = connection.scalars(select(HOST.c.name).where(ready)).all()
    for name in hosts:
        load[name] += unkept / len(hosts)
    longest = max(load.values(), default=0.0)
    return now + timedelta(seconds=longest) if longest else None


def _about(job: Job) -> dict[str, Any]:
    return {
        "job": job.key,
        "night": job.batch_id,
        "purpose": job.purpose.value,
        "scenario": job.scenario,
        "builds": list(job.builds),
        "testbed": job.testbed,
    }


def job_json(job: Job) -> dict[str, Any]:
    """Give a job as ``hybridwatch fleet plan --json`` prints it."""
    when = {"priority": job.priority, "until": job.until.isoformat()}
    return _about(job) | when | asdict(job.options)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
