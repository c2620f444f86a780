"""The queue: jobs, attempts and where series live, in the one database.

Every change is one transaction in which the job's row is locked: two drivers never have the same
job, and who lost one in the meantime changes nothing.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Row, insert, select, update

from hybridwatch.database.connection import Database, find_database_url, reading_kept, writing_kept
from hybridwatch.database.schema import ATTEMPT, HOST, JOB, PLACEMENT, TESTBED
from hybridwatch.errors import FleetError
from hybridwatch.orchestration.fleet.hosts import is_free, is_kept_there, read_hosts
from hybridwatch.orchestration.fleet.job import (
    OPEN,
    AttemptEnd,
    Fleet,
    HostKind,
    HostStatus,
    Job,
    JobState,
    Purpose,
    Start,
    build_job_row,
    parse_job_row,
)

DEADLY: Final = 3
"""A job that took so many workers with it is set aside."""
_BATCH: Final = 500
"""Rows of one statement; a database allows only so many parameters."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The clock on the wall."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a job; the first is number 1."""

    job: Job
    number: int
    host: str
    driver: str

    @property
    def id(self) -> str:
        """A name for it, fit for a file."""
        return f"{self.job.key}-{self.number}"


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """What waits, and what is known of the places where it may go."""

    waiting: tuple[Job, ...]
    fleet: Fleet


class JobQueue:
    """The queue of one results folder. Threads may share it; processes each open their own."""

    def __init__(self, database: Database, clock: Clock = utc_now, tries: int = 3) -> None:
        self.database = database
        self.clock = clock
        self._tries = tries

    def is_made(self) -> bool:
        """Whether anything was ever planned here; ``TriageError`` on tables of a newer version."""
        with reading_kept(self.database, JOB) as connection:
            return connection is not None

    def make(self) -> None:
        """Make the tables, if they are not there."""
        with writing_kept(self.database):
            pass

    def plan(self, jobs: Sequence[Job], testbeds: Iterable[HostKind] = ()) -> int:
        """Add jobs that are not known, and count them; ``testbeds`` replace earlier ones."""
        with self.database.writing() as connection:
            for testbed in testbeds:
                connection.execute(TESTBED.delete().where(TESTBED.c.name == testbed.name))
                declared = json.dumps(testbed.model_dump(), sort_keys=True)
                row = {"name": testbed.name, "declared": declared}
                connection.execute(insert(TESTBED), [row])
            known = _known(connection, [job.key for job in jobs])
            rows = [_FRESH | build_job_row(job) for job in jobs if job.key not in known]
            for begin in range(0, len(rows), _BATCH):
                connection.execute(insert(JOB), rows[begin : begin + _BATCH])
        return len(rows)

    def snapshot(self, present: Iterable[str]) -> QueueSnapshot:
        """Read what waits; ``present`` names the hosts that are there now."""
        with self.database.reading() as connection:
            rows = connection.execute(select(JOB).where(JOB.c.state == JobState.WAITING.value))
            waiting = tuple(parse_job_row(row) for row in rows)
            return QueueSnapshot(waiting, _fleet(connection, frozenset(present)))

    def claim(self, start: Start, driver: str) -> Attempt | None:
        """Take a job for a host; ``None`` when job, host or series are taken."""
        job = start.job
        with self.database.changing() as connection:
            wanted = JOB.c.key == job.key, JOB.c.state == JobState.WAITING.value
            row = connection.execute(
                select(JOB).where(*wanted).with_for_update(skip_locked=True)
            ).first()
            if row is None or not is_free(connection, start.host, HostStatus.READY):
                return None
            if not is_kept_there(connection, start, self.clock()):
                return None
            number = row.attempt + 1
            _set_job(connection, job.key, state=JobState.RUNNING.value, attempt=number, reason="")
            connection.execute(update(HOST).where(HOST.c.name == start.host).values(job=job.key))
            tried = {"job": job.key, "number": number, "host": start.host, "driver": driver}
            open_ = dict.fromkeys(("end", "reason", "record", "log"), "")
            began = tried | open_ | {"started_at": self.clock(), "ended_at": None}
            connection.execute(insert(ATTEMPT), [began])
        return Attempt(job, number, start.host, driver)

    def name_record(self, attempt: Attempt, record: str) -> bool:
        """Note a record's name before it is written; must not be, if False: the attempt is void."""
        with self.database.changing() as connection:
            if _locked(connection, attempt) is None:
                return False
            _set_attempt(connection, attempt, record=record)
        return True

    def complete(self, attempt: Attempt, put: Callable[[], None], log: str) -> bool:
        """Write a record and note that its job is done, while no other driver can take the job.

        ``put`` writes the record, which was named, if it is not there. ``log`` is a path below the
        results folder. False says that the attempt no longer counts, and that nothing was written.
        """
        with self.database.changing() as connection:
            if _locked(connection, attempt) is None:
                return False
            put()
            record = connection.scalar(select(ATTEMPT.c.record).where(*_is(attempt)))
            self._finish(connection, attempt, record, "", log)
        return True

    def end(self, attempt: Attempt, end: AttemptEnd, reason: str, log: str = "") -> JobState | None:
        """Note that an attempt left nothing; gives its job's state, ``None`` if it was void."""
        with self.database.changing() as connection:
            row = _locked(connection, attempt)
            if row is None:
                return None
            return self._end(connection, row, attempt, (end, reason), log)

    def recover(self, attempt: Attempt, is_stored: Callable[[str], bool]) -> JobState | None:
        """End an attempt without a driver: done if its record is stored, else lost; or ``None``."""
        with self.database.changing() as connection:
            row = _locked(connection, attempt)
            if row is None:
                return None
            record = connection.scalar(select(ATTEMPT.c.record).where(*_is(attempt)))
            if record and is_stored(record):
                self._finish(connection, attempt, record, "found in the store", "")
                return JobState.DONE
            how = AttemptEnd.LOST, "its driver went away"
            return self._end(connection, row, attempt, how, "")

    def running(self, driver: str = "") -> list[Attempt]:
        """List what is measured now, by every driver or by one."""
        joined = select(JOB, ATTEMPT.c.number, ATTEMPT.c.host, ATTEMPT.c.driver).join(
            ATTEMPT, (ATTEMPT.c.job == JOB.c.key) & (ATTEMPT.c.end == "")
        )
        wanted = joined.where(ATTEMPT.c.driver == driver) if driver else joined
        with self.database.reading() as connection:
            rows = connection.execute(wanted).fetchall()
        return [Attempt(parse_job_row(row), row.number, row.host, row.driver) for row in rows]

    def cancel(self, keys: Sequence[str]) -> int:
        """Cancel open jobs, and count them; one that runs ends as soon as its driver looks."""
        with self.database.changing() as connection:
            open_ = JOB.c.key.in_(keys), JOB.c.state.in_([state.value for state in OPEN])
            rows = connection.execute(select(JOB.c.key).where(*open_).with_for_update()).fetchall()
            those = JOB.c.key.in_([row.key for row in rows])
            connection.execute(update(JOB).where(those).values(cancel=True))
            connection.execute(
                update(JOB)
                .where(those, JOB.c.state == JobState.WAITING.value)
                .values(state=JobState.CANCELLED.value, reason="cancelled")
            )
        return len(rows)

    def unwanted(self) -> set[str]:
        """Give the keys of running jobs that were cancelled."""
        wanted = JOB.c.state == JobState.RUNNING.value, JOB.c.cancel
        with self.database.reading() as connection:
            return set(connection.scalars(select(JOB.c.key).where(*wanted)))

    def expire(self) -> int:
        """Give up jobs whose batch has expired, with the reason why they waited; gives how many."""
        over = JOB.c.state == JobState.WAITING.value, JOB.c.until < self.clock()
        with self.database.writing() as connection:
            gone = connection.execute(update(JOB).where(*over).values(state=JobState.MISSING.value))
        return gone.rowcount

    def explain(self, reasons: dict[str, str]) -> None:
        """Note why jobs wait, by key; only for people."""
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for key, reason in reasons.items():
            by_reason[reason].append(key)
        with self.database.writing() as connection:
            for reason, keys in by_reason.items():
                for begin in range(0, len(keys), _BATCH):
                    some = JOB.c.key.in_(keys[begin : begin + _BATCH])
                    stale = some, JOB.c.state == JobState.WAITING.value, JOB.c.reason != reason
                    connection.execute(update(JOB).where(*stale).values(reason=reason))

    def _finish(
        self, connection: Connection, attempt: Attempt, record: str | None, reason: str, log: str
    ) -> None:
        _close(connection, attempt, (AttemptEnd.STORED, reason), self.clock(), log)
        done = {"state": JobState.DONE.value, "record": record, "reason": ""}
        _set_job(connection, attempt.job.key, **done)

    def _end(
        self,
        connection: Connection,
        row: Row[Any],
        attempt: Attempt,
        how: tuple[AttemptEnd, str],
        log: str,
    ) -> JobState:
        end, reason = how
        tries = row.tries + (end is AttemptEnd.FAILED)
        deaths = row.deaths + (end is AttemptEnd.DIED)
        state = JobState.WAITING
        if row.cancel or end is AttemptEnd.STOPPED:
            state = JobState.CANCELLED
        elif deaths >= DEADLY:
            state, reason = JobState.POISONED, f"it ended {deaths} workers, the last one: {reason}"
        elif tries >= self._tries:
            state = JobState.FAILED
        _close(connection, attempt, (end, reason), self.clock(), log)
        change = {"state": state.value, "tries": tries, "deaths": deaths, "reason": reason}
        _set_job(connection, row.key, **change)
        return state


def open_queue(results: Path, tries: int = 3) -> JobQueue:
    """Open the queue of a results folder."""
    return JobQueue(Database(find_database_url(results)), tries=tries)


def made_queue(results: Path) -> JobQueue:
    """Open the queue of a results folder, made with the folder where there is none yet."""
    results.mkdir(parents=True, exist_ok=True)
    job_queue = open_queue(results)
    job_queue.make()
    return job_queue


def planned_queue(results: Path) -> JobQueue:
    """Open the queue of a results folder; without one it is a ``FleetError``."""
    job_queue = open_queue(results)
    if not job_queue.is_made():
        raise FleetError(
            f"{job_queue.database.name}: there is no queue yet: hybridwatch fleet plan"
        )
    return job_queue


_FRESH: Final = {
    "state": JobState.WAITING.value,
    "reason": "",
    "tries": 0,
    "deaths": 0,
    "attempt": 0,
    "cancel": False,
    "record": "",
}


def _known(connection: Connection, keys: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for begin in range(0, len(keys), _BATCH):
        some = JOB.c.key.in_(keys[begin : begin + _BATCH])
        found |= set(connection.scalars(select(JOB.c.key).where(some)))
    return found


def _fleet(connection: Connection, present: frozenset[str]) -> Fleet:
    keepers: defaultdict[str, list[str]] = defaultdict(list)
    order = PLACEMENT.c.since, PLACEMENT.c.host
    for row in connection.execute(select(PLACEMENT).order_by(*order)):
        keepers[row.series].append(row.host)
    testbeds = map(HostKind.model_validate_json, connection.scalars(select(TESTBED.c.declared)))
    open_ = JOB.c.purpose == Purpose.A_A.value, JOB.c.state.in_([state.value for state in OPEN])
    steady = map(parse_job_row, connection.execute(select(JOB).where(*open_)))
    return Fleet(
        hosts=read_hosts(connection),
        present=present,
        keepers=keepers,
        testbeds={testbed.name: testbed for testbed in testbeds},
        unproven=frozenset((job.options.host, job.batch_id) for job in steady),
    )


def _is(attempt: Attempt) -> tuple[Any, Any]:
    return ATTEMPT.c.job == attempt.job.key, ATTEMPT.c.number == attempt.number


def _locked(connection: Connection, attempt: Attempt) -> Row[Any] | None:
    """Lock the job of an attempt, if that is still the one that counts."""
    current = (
        JOB.c.key == attempt.job.key,
        JOB.c.attempt == attempt.number,
        JOB.c.state == JobState.RUNNING.value,
    )
    return connection.execute(select(JOB).where(*current).with_for_update()).first()


def _close(
    connection: Connection, attempt: Attempt, how: tuple[AttemptEnd, str], now: datetime, log: str
) -> None:
    end, reason = how
    change = {"end": end.value, "reason": reason, "ended_at": now, "log": log}
    _set_attempt(connection, attempt, **change)
    connection.execute(update(HOST).where(HOST.c.job == attempt.job.key).values(job=""))


def _set_attempt(connection: Connection, attempt: Attempt, **change: Any) -> None:
    connection.execute(update(ATTEMPT).where(*_is(attempt)).values(**change))


def _set_job(connection: Connection, key: str, **change: Any) -> None:
    connection.execute(update(JOB).where(JOB.c.key == key).values(**change))
