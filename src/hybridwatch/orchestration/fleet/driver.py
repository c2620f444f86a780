"""The loop that drains a queue: see who is there, book what ended, start what may start.

A driver keeps nothing that matters: it may die at any line here. Whatever it had in hand is found
in the queue by the next driver, or by itself once the database answers again.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from hybridwatch.analysis.gate import stands
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import DatabaseError, FleetError, RecordError
from hybridwatch.orchestration.fleet.cluster import (
    Cluster,
    Ended,
    Fate,
    HealthCheck,
    HostOrder,
    JobCommand,
    JobResult,
)
from hybridwatch.orchestration.fleet.health import HealthReport, judge_health
from hybridwatch.orchestration.fleet.hosts import HostRegistry
from hybridwatch.orchestration.fleet.job import AttemptEnd, Job, JobState, Purpose
from hybridwatch.orchestration.fleet.job_queue import Attempt, JobQueue, QueueSnapshot
from hybridwatch.orchestration.fleet.matrix import a_a_job
from hybridwatch.orchestration.fleet.measuring import build_job_command
from hybridwatch.orchestration.fleet.placing import Host, HostStatus, place, why_waiting
from hybridwatch.orchestration.fleet.results import import_result, keep_log
from hybridwatch.records.run import Run

_SHIFTED: Final = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT})


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """How long a driver waits; seconds.

    Attributes:
        look_s: It looks around (hosts, other drivers, what was cancelled) so often.
        wait_s: For so long it waits for an end of something before it looks whether it is time.
        patience_s: With nothing to start it stays for so long, since hosts may come back.
        away_s: It gives up when the database was away for so long.
    """

    look_s: float = 5.0
    wait_s: float = 1.0
    patience_s: float = 60.0
    away_s: float = 600.0


@dataclass(slots=True)
class DriverSummary:
    """What a driver did.

    Attributes:
        ends: How many attempts ended how.
        given_up: How many jobs are not tried again.
        left: Jobs that still wait, with the reasons.
    """

    ends: Counter[AttemptEnd] = field(default_factory=Counter)
    given_up: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class DriverDeps:
    """What a driver works with.

    Attributes:
        results: Folder that gets the records.
        measurement: Says how a job is measured on a host of a machine.
    """

    job_queue: JobQueue
    registry: HostRegistry
    cluster: Cluster
    results: Path
    say: Callable[[str], None]
    measurement: Callable[[Job, str, str], JobCommand] = build_job_command


class QueueDriver:
    """Drains a queue."""

    def __init__(self, deps: DriverDeps, settings: DriverSettings) -> None:
        self.name = secrets.token_hex(8)
        self._deps = deps
        self._settings = settings
        self._now = deps.job_queue.clock
        self._summary = DriverSummary()
        self._measured: dict[str, Attempt] = {}
        self._proving: dict[str, str] = {}
        """Hosts by the order that asks them."""
        self._asked: dict[str, int] = {}
        """How often each host was checked in a row."""
        self._unbooked: list[Ended] = []
        self._looked_at: datetime | None = None
        self._busy_at = self._now()
        self._elsewhere = 0
        self._explained: dict[str, str] = {}
        self._present: frozenset[str] = frozenset()

    def drain(self) -> DriverSummary:
        """Work until nothing is left that could be done.

        Raises:
            FleetError: The cluster is gone, or another driver has the queue.
            DatabaseError: The database was away for too long.
        """
        deps = self._deps
        deps.job_queue.make()
        deps.registry.join(self.name)
        try:
            self._work()
        finally:
            deps.cluster.close()
            self._leave()
        return self._summary

    def _work(self) -> None:
        away_since: datetime | None = None
        while True:
            try:
                goes_on = self._step()
            except DatabaseError as error:
                now = self._now()
                if away_since is None:
                    away_since = now
                    self._deps.say(f"the database is away, waiting for it: {error}")
                if now - away_since > timedelta(seconds=self._settings.away_s):
                    raise
                self._looked_at = None  # whatever was under way is looked for in the queue
                self._unbooked += self._deps.cluster.ended(self._settings.wait_s)
                continue
            if away_since is not None:
                self._deps.say("the database is back")
                away_since = None
            if not goes_on:
                return

    def _step(self) -> bool:
        """Do what is to be done now; whether there is more."""
        looked = self._look() if self._is_time_to_look() else False
        ended = self._deps.cluster.ended(0.0 if looked else self._settings.wait_s)
        self._unbooked += ended
        while self._unbooked:
            self._book(self._unbooked[0])
            del self._unbooked[0]
        if not (ended or looked):
            return True
        queue = self._deps.job_queue.snapshot(self._present)
        self._schedule_health_checks(queue, looked)
        begun = self._begin(queue)
        goes_on = self._goes_on(queue, begun)
        if looked or not goes_on:
            self._explain(queue)
        return goes_on

    def _is_time_to_look(self) -> bool:
        if self._looked_at is None:
            return True
        return self._now() - self._looked_at >= timedelta(seconds=self._settings.look_s)

    def _look(self) -> bool:
        """See who is there, what has no driver, and what is no longer wanted."""
        deps = self._deps
        if not deps.registry.heartbeat(self.name):
            self._start_over()
        nodes = deps.cluster.nodes()
        deps.registry.see(nodes)
        self._present = frozenset(node.name for node in nodes)
        for gone in deps.registry.expire_dead_drivers():
            self._recover(gone, frozenset())
        self._recover(self.name, frozenset(self._measured))
        unwanted = deps.job_queue.unwanted()
        for order, attempt in self._measured.items():
            if attempt.job.key in unwanted:
                deps.cluster.stop(order)
        if missing := deps.job_queue.expire():
            deps.say(f"{missing} jobs are missing: their batch has expired")
        self._elsewhere = len(deps.job_queue.running()) - len(self._measured)
        self._looked_at = self._now()
        return True

    def _start_over(self) -> None:
        """Begin as another driver: this one was taken for dead, and its jobs are others' now."""
        self._deps.say("this driver had expired; it starts over")
        for order in (*self._measured, *self._proving):
            self._deps.cluster.stop(order)
        self._measured.clear()
        self._proving.clear()
        self.name = secrets.token_hex(8)
        self._deps.registry.join(self.name)

    def _recover(self, driver: str, watched: frozenset[str]) -> None:
        results = self._deps.results
        for attempt in self._deps.job_queue.running(driver):
            if attempt.id not in watched:
                state = self._deps.job_queue.recover(attempt, lambda one: (results / one).exists())
                word = "its record was there" if state is JobState.DONE else "it waits again"
                self._deps.say(f"{attempt.job.title}: nobody watched attempt {attempt.id}; {word}")

    def _book(self, ended: Ended) -> None:
        order = ended.order.id
        if order in self._proving:
            self._book_proof(self._proving[order], ended)
            del self._proving[order]
        elif order in self._measured:
            self._book_attempt(self._measured[order], ended)
            del self._measured[order]
        self._busy_at = self._now()

    def _book_proof(self, name: str, ended: Ended) -> None:
        registry, say = self._deps.registry, self._deps.say
        if not isinstance(ended.result, HealthReport):
            registry.release_host(name)
            self._present -= {name}
            say(f"{name}: health check failed to run: {ended.reason or ended.fate.value}")
            return
        queue = self._deps.job_queue.snapshot(self._present)
        host = queue.fleet.hosts[name]
        kinds = [one for one in queue.fleet.testbeds.values() if one.has(host.labels, host.gpus)]
        own, peers = registry.past(host)
        found = judge_health(ended.result, kinds, own, peers)
        asked = self._asked.get(name, 0) + 1
        if found.again and asked > 1:
            found = type(found)(found.reason)
        self._asked[name] = asked if found.again else 0
        registry.record_health(name, ended.result, found)
        if found.reason:
            say(f"{name}: {'checked again' if found.again else 'in quarantine'}: {found.reason}")

    def _book_attempt(self, attempt: Attempt, ended: Ended) -> None:
        match ended.fate, ended.result:
            case Fate.GAVE, JobResult(record=record) as result if record:
                self._book_record(attempt, result)
            case Fate.GAVE, JobResult() as result:
                log = keep_log(self._deps.results, attempt, result.log)
                self._end(attempt, AttemptEnd.FAILED, result.reason, log)
            case Fate.HOST_GONE, _:
                self._present -= {attempt.host}
                self._end(attempt, AttemptEnd.LOST, f"its host went away: {ended.reason}")
            case Fate.STOPPED, _:
                self._end(attempt, AttemptEnd.STOPPED, "cancelled")
            case _:
                self._end(attempt, AttemptEnd.DIED, ended.reason)

    def _book_record(self, attempt: Attempt, result: JobResult) -> None:
        deps = self._deps
        try:
            run = import_result(deps.job_queue, deps.results, attempt, result)
        except (RecordError, FleetError) as error:
            self._end(attempt, AttemptEnd.FAILED, str(error))
            return
        if run is None:
            deps.say(f"{attempt.job.title}: attempt {attempt.id} came too late, and was left out")
            return
        self._summary.ends[AttemptEnd.STORED] += 1
        deps.say(f"{attempt.job.title}: measured on {attempt.host}")
        if attempt.job.purpose is Purpose.A_A and (reason := unsteady(run)):
            self._quarantine(attempt.host, reason)

    def _end(self, attempt: Attempt, end: AttemptEnd, reason: str, log: str = "") -> None:
        state = self._deps.job_queue.end(attempt, end, reason, log)
        if state is None:
            return
        self._summary.ends[end] += 1
        self._deps.say(f"{attempt.job.title}: {end.value} on {attempt.host}: {reason}")
        if state in (JobState.FAILED, JobState.POISONED):
            self._summary.given_up += 1
            self._deps.say(f"{attempt.job.title}: {state.value}, it is not tried again")
            if attempt.job.purpose is Purpose.A_A:
                self._quarantine(attempt.host, f"its A/A {state.value}: {reason}")

    def _quarantine(self, host: str, reason: str) -> None:
        self._deps.registry.set_status(host, HostStatus.QUARANTINED, reason)
        self._deps.say(f"{host}: in quarantine: {reason}")

    def _schedule_health_checks(self, queue: QueueSnapshot, looked: bool) -> None:
        """Start health checks of idle hosts, and plan the A/A that each has to pass."""
        batches = {job.batch_id: job for job in queue.waiting if job.purpose is not Purpose.A_A}
        steady = [
            job
            for host in queue.fleet.hosts.values()
            if host.name in queue.fleet.present and host.standing is HostStatus.READY
            for job in self._steady_jobs(host, queue, batches)
        ]
        if steady and (new := self._deps.job_queue.plan(steady)):
            self._deps.say(f"{new} hosts have to show an A/A first")
            self._looked_at = None  # they are not in the queue that was read
        asked = set(self._proving.values())
        # Whether an earlier check still holds need not be asked after every job.
        asking = {HostStatus.NEW, HostStatus.READY} if looked else {HostStatus.NEW}
        for name in sorted(self._present - asked):
            host = queue.fleet.hosts.get(name)
            due = host is not None and not host.job and host.standing in asking
            if due and self._deps.registry.reserve_host(name, self.name):
                order = HostOrder(f"proof-{secrets.token_hex(4)}", name, 0, HealthCheck())
                self._proving[order.id] = name
                self._deps.cluster.start(order)

    def _steady_jobs(
        self, host: Host, queue: QueueSnapshot, batches: Mapping[str, Job]
    ) -> list[Job]:
        kinds = [one for one in queue.fleet.testbeds.values() if one.has(host.labels, host.gpus)]
        wanted = (a_a_job(kind, host.name, like) for kind in kinds for like in batches.values())
        return [job for job in wanted if job is not None]

    def _begin(self, queue: QueueSnapshot) -> int:
        """Start what may start; how many that is."""
        ours = frozenset(self._proving.values()) | {one.host for one in self._measured.values()}
        begun = 0
        if self._looked_at is None:
            return begun
        for start in place(queue.waiting, queue.fleet):
            if start.host in ours:
                continue
            attempt = self._deps.job_queue.claim(start, self.name)
            if attempt is None:
                continue
            host = queue.fleet.hosts[start.host]
            work = self._deps.measurement(start.job, host.name, host.machine)
            gpus = queue.fleet.testbeds[start.job.testbed].gpus
            self._measured[attempt.id] = attempt
            self._deps.cluster.start(HostOrder(attempt.id, host.name, gpus, work))
            begun += 1
        return begun

    def _goes_on(self, queue: QueueSnapshot, begun: int) -> bool:
        if begun or self._measured or self._proving or self._elsewhere or self._looked_at is None:
            self._busy_at = self._now()
            return True
        patient = self._now() - self._busy_at < timedelta(seconds=self._settings.patience_s)
        return bool(queue.waiting) and patient

    def _explain(self, queue: QueueSnapshot) -> None:
        """Note why jobs wait, as far as it is news."""
        reasons = {job.key: why_waiting(job, queue.fleet) for job in queue.waiting}
        news = {key: why for key, why in reasons.items() if self._explained.get(key, "") != why}
        if news:
            self._deps.job_queue.explain(news)
        self._explained = reasons
        self._summary.left = Counter(reasons.values())

    def _leave(self) -> None:
        """Give back what is in hand; where the database is away, others find it."""
        try:
            self._recover(self.name, frozenset())
            self._deps.registry.leave(self.name)
        except DatabaseError as error:
            self._deps.say(f"left without a word to the database: {error}")


def unsteady(run: Run) -> str:
    """Say what an A/A shows to differ, although nothing does; empty for a steady host."""
    report = build_report(run)
    if report.failures:
        return f"its A/A has failed trials: {report.failures[0]}"
    moved = [
        f"{one.metric.id} {one.effect:+.1%}"
        for one in report.comparisons
        if one.verdict in _SHIFTED and stands(one, report) and one.effect is not None
    ]
    return f"its A/A tells one build from itself: {', '.join(moved)}" if moved else ""
