"""The loop that drains a queue: checks hosts, books finished jobs, starts the next ones.

It may die at any line. A record's name stands in the queue before it is stored, and the job is done
in the transaction that stores it: the next driver finds whatever was in hand.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

from hybridwatch.analysis.gate import stands
from hybridwatch.analysis.report import build_report
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import DatabaseError, FleetError, RecordError
from hybridwatch.orchestration.fleet.cluster import (
    Cluster,
    Ended,
    Fate,
    HealthReport,
    HealthVerdict,
    HostOrder,
    JobCommand,
    JobResult,
    judge_health,
)
from hybridwatch.orchestration.fleet.hosts import HostRegistry
from hybridwatch.orchestration.fleet.job import (
    AttemptEnd,
    HostStatus,
    Job,
    JobState,
    Purpose,
    place,
    why_waiting,
)
from hybridwatch.orchestration.fleet.job_queue import Attempt, JobQueue, QueueSnapshot
from hybridwatch.orchestration.fleet.matrix import a_a_job
from hybridwatch.orchestration.fleet.measuring import build_job_command
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
    """Store the record of an attempt, whose job is done; ``None`` if it did not count any more.

    After a ``DatabaseError`` another call does the rest.
    """
    store = results / PROBES if attempt.job.purpose is Purpose.PROBE else results
    run = decode(result.record, result.bulk)
    job = attempt.job
    if run.scenario.id != job.scenario or len(run.builds) != len(job.builds):
        labels = " against ".join(build.label for build in run.builds)
        raise FleetError(
            f"job {job.key}: expected a record of {job.title}, found one of {run.scenario.id} "
            f"{labels}"
        )
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
    """What a driver did."""

    ends: Counter[AttemptEnd] = field(default_factory=Counter)
    given_up: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class QueueDriver:
    """Drains a queue; ``measurement`` says how a job is measured on a host of a machine."""

    job_queue: JobQueue
    cluster: Cluster
    results: Path
    say: Callable[[str], None]
    settings: DriverSettings
    measurement: Callable[[Job, str, str], JobCommand] = build_job_command
    name: str = field(init=False, default_factory=lambda: secrets.token_hex(8))
    registry: HostRegistry = field(init=False)
    _summary: DriverSummary = field(init=False, default_factory=DriverSummary)
    _measured: dict[str, Attempt] = field(init=False, default_factory=dict)
    _checked: dict[str, str] = field(init=False, default_factory=dict)
    """Hosts by the order that checks them."""
    _checks: Counter[str] = field(init=False, default_factory=Counter)
    """How often each host was checked in a row."""
    _unbooked: list[Ended] = field(init=False, default_factory=list)
    _looked_at: datetime | None = field(init=False, default=None)
    _busy_at: datetime = field(init=False)
    _elsewhere: int = field(init=False, default=0)
    _explained: dict[str, str] = field(init=False, default_factory=dict)
    _present: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        self.registry = HostRegistry(self.job_queue.database, self.job_queue.clock)
        self._busy_at = self._now()

    def _now(self) -> datetime:
        return self.job_queue.clock()

    def drain(self) -> DriverSummary:
        """Work until nothing is left that could be done."""
        self.job_queue.make()
        self.registry.join(self.name)
        try:
            self._work()
        finally:
            self.cluster.close()
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
                    self.say(f"the database is away, waiting for it: {error}")
                if now - away_since > timedelta(seconds=self.settings.away_s):
                    raise
                self._looked_at = None  # whatever was under way is looked for in the queue
                self._unbooked += self.cluster.ended(self.settings.wait_s)
                continue
            if away_since is not None:
                self.say("the database is back")
                away_since = None
            if not goes_on:
                return

    def _step(self) -> bool:
        pause = timedelta(seconds=self.settings.look_s)
        if looked := self._looked_at is None or self._now() - self._looked_at >= pause:
            self._look()
        ended = self.cluster.ended(0.0 if looked else self.settings.wait_s)
        self._unbooked += ended
        while self._unbooked:
            self._book(self._unbooked[0])
            del self._unbooked[0]
        if not (ended or looked):
            return True
        queue = self.job_queue.snapshot(self._present)
        self._schedule_health_checks(queue, looked)
        begun = self._begin(queue)
        goes_on = self._goes_on(queue, begun)
        if looked or not goes_on:
            self._explain(queue)
        return goes_on

    def _look(self) -> None:
        if not self.registry.heartbeat(self.name):
            self._start_over()
        nodes = self.cluster.nodes()
        self.registry.see(nodes)
        self._present = frozenset(node.name for node in nodes)
        for gone in self.registry.expire_dead_drivers():
            self._recover(gone, frozenset())
        self._recover(self.name, frozenset(self._measured))
        unwanted = self.job_queue.unwanted()
        for order, attempt in self._measured.items():
            if attempt.job.key in unwanted:
                self.cluster.stop(order)
        if missing := self.job_queue.expire():
            self.say(f"{missing} jobs are missing: their batch has expired")
        self._elsewhere = len(self.job_queue.running()) - len(self._measured)
        self._looked_at = self._now()

    def _start_over(self) -> None:
        """Begin as another driver: this one was taken for dead, and its jobs are others' now."""
        self.say("this driver had expired; it starts over")
        for order in (*self._measured, *self._checked):
            self.cluster.stop(order)
        self._measured.clear()
        self._checked.clear()
        self.name = secrets.token_hex(8)
        self.registry.join(self.name)

    def _recover(self, driver: str, watched: frozenset[str]) -> None:
        for attempt in self.job_queue.running(driver):
            if attempt.id not in watched:
                state = self.job_queue.recover(attempt, lambda one: (self.results / one).exists())
                word = "its record was there" if state is JobState.DONE else "it waits again"
                self.say(f"{attempt.job.title}: no driver watched attempt {attempt.id}; {word}")

    def _book(self, ended: Ended) -> None:
        order = ended.order.id
        if order in self._checked:
            self._book_health(self._checked[order], ended)
            del self._checked[order]
        elif order in self._measured:
            self._book_attempt(self._measured[order], ended)
            del self._measured[order]
        self._busy_at = self._now()

    def _book_health(self, name: str, ended: Ended) -> None:
        if not isinstance(ended.result, HealthReport):
            self.registry.release_host(name)
            self._present -= {name}
            self.say(f"{name}: health check failed to run: {ended.reason or ended.fate.value}")
            return
        queue = self.job_queue.snapshot(self._present)
        host = queue.fleet.hosts[name]
        own, peers = self.registry.past(host)
        found = judge_health(ended.result, queue.fleet.kinds(host), own, peers)
        self._checks[name] += 1
        if found.again and self._checks[name] > 1:
            found = HealthVerdict(found.reason)
        if not found.again:
            del self._checks[name]
        self.registry.record_health(name, ended.result, found)
        if found.reason:
            what = "checked again" if found.again else "in quarantine"
            self.say(f"{name}: {what}: {found.reason}")

    def _book_attempt(self, attempt: Attempt, ended: Ended) -> None:
        match ended.fate, ended.result:
            case Fate.GAVE, JobResult(record=record) as result if record:
                self._book_record(attempt, result)
            case Fate.GAVE, JobResult() as result:
                log = keep_log(self.results, attempt, result.log)
                self._end(attempt, AttemptEnd.FAILED, result.reason, log)
            case Fate.HOST_GONE, _:
                self._present -= {attempt.host}
                self._end(attempt, AttemptEnd.LOST, f"its host went away: {ended.reason}")
            case Fate.STOPPED, _:
                self._end(attempt, AttemptEnd.STOPPED, "cancelled")
            case _:
                self._end(attempt, AttemptEnd.DIED, ended.reason)

    def _book_record(self, attempt: Attempt, result: JobResult) -> None:
        try:
            run = import_result(self.job_queue, self.results, attempt, result)
        except (RecordError, FleetError) as error:
            self._end(attempt, AttemptEnd.FAILED, str(error))
            return
        if run is None:
            self.say(f"{attempt.job.title}: attempt {attempt.id} came too late, and was left out")
            return
        self._summary.ends[AttemptEnd.STORED] += 1
        self.say(f"{attempt.job.title}: measured on {attempt.host}")
        if attempt.job.purpose is Purpose.A_A and (reason := unsteady(run)):
            self._quarantine(attempt.host, reason)

    def _end(self, attempt: Attempt, end: AttemptEnd, reason: str, log: str = "") -> None:
        state = self.job_queue.end(attempt, end, reason, log)
        if state is None:
            return
        self._summary.ends[end] += 1
        self.say(f"{attempt.job.title}: {end.value} on {attempt.host}: {reason}")
        if state in (JobState.FAILED, JobState.POISONED):
            self._summary.given_up += 1
            self.say(f"{attempt.job.title}: {state.value}, it is not tried again")
            if attempt.job.purpose is Purpose.A_A:
                self._quarantine(attempt.host, f"its A/A {state.value}: {reason}")

    def _quarantine(self, host: str, reason: str) -> None:
        self.registry.set_status(host, HostStatus.QUARANTINED, reason)
        self.say(f"{host}: in quarantine: {reason}")

    def _schedule_health_checks(self, queue: QueueSnapshot, looked: bool) -> None:
        """Start health checks of idle hosts, and plan the A/A that each has to pass."""
        batches = {job.batch_id: job for job in queue.waiting if job.purpose is not Purpose.A_A}
        steady = [
            job
            for host in queue.fleet.hosts.values()
            if queue.fleet.usable(host.name)
            for kind, like in product(queue.fleet.kinds(host), batches.values())
            if (job := a_a_job(kind, host.name, like)) is not None
        ]
        if steady and (new := self.job_queue.plan(steady)):
            self.say(f"{new} hosts have to show an A/A first")
            self._looked_at = None  # they are not in the queue that was read
        checked = set(self._checked.values())
        # Whether an earlier check still holds need not be looked up after every job.
        asking = {HostStatus.NEW, HostStatus.READY} if looked else {HostStatus.NEW}
        for name in sorted(self._present - checked):
            host = queue.fleet.hosts.get(name)
            due = host is not None and not host.job and host.standing in asking
            if due and self.registry.reserve_host(name, self.name):
                order = HostOrder(f"proof-{secrets.token_hex(4)}", name, 0, None)
                self._checked[order.id] = name
                self.cluster.start(order)

    def _begin(self, queue: QueueSnapshot) -> int:
        ours = frozenset(self._checked.values()) | {one.host for one in self._measured.values()}
        begun = 0
        if self._looked_at is None:
            return begun
        for start in place(queue.waiting, queue.fleet):
            attempt = None if start.host in ours else self.job_queue.claim(start, self.name)
            if attempt is None:
                continue
            host = queue.fleet.hosts[start.host]
            work = self.measurement(start.job, host.name, host.machine)
            gpus = queue.fleet.testbeds[start.job.testbed].gpus
            self._measured[attempt.id] = attempt
            self.cluster.start(HostOrder(attempt.id, host.name, gpus, work))
            begun += 1
        return begun

    def _goes_on(self, queue: QueueSnapshot, begun: int) -> bool:
        if begun or self._measured or self._checked or self._elsewhere or self._looked_at is None:
            self._busy_at = self._now()
            return True
        patient = self._now() - self._busy_at < timedelta(seconds=self.settings.patience_s)
        return bool(queue.waiting) and patient

    def _explain(self, queue: QueueSnapshot) -> None:
        reasons = {job.key: why_waiting(job, queue.fleet) for job in queue.waiting}
        news = {key: why for key, why in reasons.items() if self._explained.get(key, "") != why}
        if news:
            self.job_queue.explain(news)
        self._explained = reasons
        self._summary.left = Counter(reasons.values())

    def _leave(self) -> None:
        """Give back what is in hand; where the database is away, others find it."""
        try:
            self._recover(self.name, frozenset())
            self.registry.leave(self.name)
        except DatabaseError as error:
            self.say(f"left without a word to the database: {error}")


def unsteady(run: Run) -> str:
    """Say what an A/A shows to differ, although nothing does; empty for a steady host."""
    report = build_report(run)
    if report.failures:
        return f"its A/A has failed trials: {report.failures[0]}"
    moved = [
        f"{one.metric.id} {one.effect:+.1%}"
        for one in report.comparisons
        if one.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
        and stands(one, report)
        and one.effect is not None
    ]
    return f"its A/A tells one build from itself: {', '.join(moved)}" if moved else ""
