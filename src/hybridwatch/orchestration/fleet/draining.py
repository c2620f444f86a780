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
from hybridwatch.analysis.report import report_of
from hybridwatch.analysis.verdict import Verdict
from hybridwatch.errors import DatabaseError, FleetError, RecordError
from hybridwatch.orchestration.fleet.cluster import (
    Brought,
    Cluster,
    Ended,
    Fate,
    Measurement,
    Order,
    Proving,
)
from hybridwatch.orchestration.fleet.homecoming import bring_home, keep_log
from hybridwatch.orchestration.fleet.job import End, Job, Purpose, State
from hybridwatch.orchestration.fleet.ledger import Attempt, Ledger, Queue
from hybridwatch.orchestration.fleet.matrix import a_a_job
from hybridwatch.orchestration.fleet.measuring import measurement_of
from hybridwatch.orchestration.fleet.placing import Host, Standing, place, why_waiting
from hybridwatch.orchestration.fleet.proof import Shown, judged
from hybridwatch.orchestration.fleet.roll import Roll
from hybridwatch.records.run import Run

_SHIFTED: Final = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT})


@dataclass(frozen=True, slots=True)
class Terms:
    """How patient a driver is; seconds.

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
class Tally:
    """What a driver did.

    Attributes:
        ends: How many attempts ended how.
        given_up: How many jobs are not tried again.
        left: Jobs that still wait, with the reasons.
    """

    ends: Counter[End] = field(default_factory=Counter)
    given_up: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Means:
    """What a driver works with.

    Attributes:
        ledger: The queue.
        roll: Hosts and drivers.
        cluster: Where things run.
        results: Folder that gets the records.
        say: Takes a line for each thing that happened.
        measurement: Says how a job is measured on a host of a machine.
    """

    ledger: Ledger
    roll: Roll
    cluster: Cluster
    results: Path
    say: Callable[[str], None]
    measurement: Callable[[Job, str, str], Measurement] = measurement_of


class Driver:
    """Drains a queue.

    Args:
        means: What with.
        terms: How patiently.
    """

    def __init__(self, means: Means, terms: Terms) -> None:
        self.name = secrets.token_hex(8)
        self._means = means
        self._terms = terms
        self._now = means.ledger.clock
        self._tally = Tally()
        self._measured: dict[str, Attempt] = {}
        self._proving: dict[str, str] = {}
        """Hosts by the order that asks them."""
        self._asked: dict[str, int] = {}
        """How often each host was asked in a row."""
        self._unbooked: list[Ended] = []
        self._looked_at: datetime | None = None
        self._busy_at = self._now()
        self._elsewhere = 0
        self._explained: dict[str, str] = {}
        self._present: frozenset[str] = frozenset()

    def drain(self) -> Tally:
        """Work until nothing is left that could be done.

        Raises:
            FleetError: The cluster is gone, or another driver has the queue.
            DatabaseError: The database was away for too long.
        """
        means = self._means
        means.ledger.make()
        means.roll.join(self.name)
        try:
            self._work()
        finally:
            means.cluster.close()
            self._leave()
        return self._tally

    def _work(self) -> None:
        away_since: datetime | None = None
        while True:
            try:
                goes_on = self._step()
            except DatabaseError as error:
                now = self._now()
                if away_since is None:
                    away_since = now
                    self._means.say(f"the database is away, waiting for it: {error}")
                if now - away_since > timedelta(seconds=self._terms.away_s):
                    raise
                self._looked_at = None  # whatever was under way is looked for in the queue
                self._unbooked += self._means.cluster.ended(self._terms.wait_s)
                continue
            if away_since is not None:
                self._means.say("the database is back")
                away_since = None
            if not goes_on:
                return

    def _step(self) -> bool:
        """Do what is to be done now; whether there is more."""
        looked = self._look() if self._is_time_to_look() else False
        ended = self._means.cluster.ended(0.0 if looked else self._terms.wait_s)
        self._unbooked += ended
        while self._unbooked:
            self._book(self._unbooked[0])
            del self._unbooked[0]
        if not (ended or looked):
            return True
        queue = self._means.ledger.queue(self._present)
        self._greet(queue, looked)
        begun = self._begin(queue)
        goes_on = self._goes_on(queue, begun)
        if looked or not goes_on:
            self._explain(queue)
        return goes_on

    def _is_time_to_look(self) -> bool:
        if self._looked_at is None:
            return True
        return self._now() - self._looked_at >= timedelta(seconds=self._terms.look_s)

    def _look(self) -> bool:
        """See who is there, what nobody watches, and what nobody wants any more."""
        means = self._means
        if not means.roll.beat(self.name):
            self._start_over()
        nodes = means.cluster.nodes()
        means.roll.see(nodes)
        self._present = frozenset(node.name for node in nodes)
        for gone in means.roll.bury():
            self._recover(gone, frozenset())
        self._recover(self.name, frozenset(self._measured))
        unwanted = means.ledger.unwanted()
        for order, attempt in self._measured.items():
            if attempt.job.key in unwanted:
                means.cluster.stop(order)
        if missing := means.ledger.expire():
            means.say(f"{missing} jobs are missing: their night is over")
        self._elsewhere = len(means.ledger.running()) - len(self._measured)
        self._looked_at = self._now()
        return True

    def _start_over(self) -> None:
        """Begin as another driver: this one was taken for dead, and its jobs are others' now."""
        self._means.say("this driver was silent for too long; it begins anew")
        for order in (*self._measured, *self._proving):
            self._means.cluster.stop(order)
        self._measured.clear()
        self._proving.clear()
        self.name = secrets.token_hex(8)
        self._means.roll.join(self.name)

    def _recover(self, driver: str, watched: frozenset[str]) -> None:
        for attempt in self._means.ledger.running(driver):
            if attempt.id not in watched:
                state = self._means.ledger.recover(attempt, self._is_stored)
                word = "its record was there" if state is State.DONE else "it waits again"
                self._means.say(f"{attempt.job.title}: nobody watched attempt {attempt.id}; {word}")

    def _is_stored(self, record: str) -> bool:
        return (self._means.results / record).exists()

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
        roll, say = self._means.roll, self._means.say
        if not isinstance(ended.result, Shown):
            roll.unask(name)
            self._present -= {name}
            say(f"{name}: could not prove itself: {ended.reason or ended.fate.value}")
            return
        queue = self._means.ledger.queue(self._present)
        host = queue.fleet.hosts[name]
        kinds = [one for one in queue.fleet.testbeds.values() if one.has(host.labels, host.gpus)]
        own, peers = roll.past(host)
        found = judged(ended.result, kinds, own, peers)
        asked = self._asked.get(name, 0) + 1
        if found.again and asked > 1:
            found = type(found)(found.reason)
        self._asked[name] = asked if found.again else 0
        roll.prove(name, ended.result, found)
        if found.reason:
            say(f"{name}: {'asked again' if found.again else 'in quarantine'}: {found.reason}")

    def _book_attempt(self, attempt: Attempt, ended: Ended) -> None:
        match ended.fate, ended.result:
            case Fate.GAVE, Brought(record=record) as brought if record:
                self._book_record(attempt, brought)
            case Fate.GAVE, Brought() as brought:
                log = keep_log(self._means.results, attempt, brought.log)
                self._end(attempt, End.FAILED, brought.reason, log)
            case Fate.HOST_GONE, _:
                self._present -= {attempt.host}
                self._end(attempt, End.LOST, f"its host went away: {ended.reason}")
            case Fate.STOPPED, _:
                self._end(attempt, End.STOPPED, "cancelled")
            case _:
                self._end(attempt, End.DIED, ended.reason)

    def _book_record(self, attempt: Attempt, brought: Brought) -> None:
        means = self._means
        try:
            run = bring_home(means.ledger, means.results, attempt, brought)
        except (RecordError, FleetError) as error:
            self._end(attempt, End.FAILED, str(error))
            return
        if run is None:
            means.say(f"{attempt.job.title}: attempt {attempt.id} came too late, and was left out")
            return
        self._tally.ends[End.STORED] += 1
        means.say(f"{attempt.job.title}: measured on {attempt.host}")
        if attempt.job.purpose is Purpose.A_A and (reason := unsteady(run)):
            self._quarantine(attempt.host, reason)

    def _end(self, attempt: Attempt, end: End, reason: str, log: str = "") -> None:
        state = self._means.ledger.end(attempt, end, reason, log)
        if state is None:
            return
        self._tally.ends[end] += 1
        self._means.say(f"{attempt.job.title}: {end.value} on {attempt.host}: {reason}")
        if state in (State.FAILED, State.POISONED):
            self._tally.given_up += 1
            self._means.say(f"{attempt.job.title}: {state.value}, it is not tried again")
            if attempt.job.purpose is Purpose.A_A:
                self._quarantine(attempt.host, f"its A/A {state.value}: {reason}")

    def _quarantine(self, host: str, reason: str) -> None:
        self._means.roll.set_standing(host, Standing.QUARANTINED, reason)
        self._means.say(f"{host}: in quarantine: {reason}")

    def _greet(self, queue: Queue, looked: bool) -> None:
        """Have hosts that are idle prove themselves, and plan what each has to show tonight."""
        nights = {job.night: job for job in queue.waiting if job.purpose is not Purpose.A_A}
        steady = [
            job
            for host in queue.fleet.hosts.values()
            if host.name in queue.fleet.present and host.standing is Standing.READY
            for job in self._steady_jobs(host, queue, nights)
        ]
        if steady and (new := self._means.ledger.plan(steady)):
            self._means.say(f"{new} hosts have to show an A/A first")
            self._looked_at = None  # they are not in the queue that was read
        asked = set(self._proving.values())
        # Whether a proof of before still holds need not be asked after every job.
        asking = {Standing.NEW, Standing.READY} if looked else {Standing.NEW}
        for name in sorted(self._present - asked):
            host = queue.fleet.hosts.get(name)
            due = host is not None and not host.job and host.standing in asking
            if due and self._means.roll.ask(name, self.name):
                order = Order(f"proof-{secrets.token_hex(4)}", name, 0, Proving())
                self._proving[order.id] = name
                self._means.cluster.start(order)

    def _steady_jobs(self, host: Host, queue: Queue, nights: Mapping[str, Job]) -> list[Job]:
        kinds = [one for one in queue.fleet.testbeds.values() if one.has(host.labels, host.gpus)]
        wanted = (a_a_job(kind, host.name, like) for kind in kinds for like in nights.values())
        return [job for job in wanted if job is not None]

    def _begin(self, queue: Queue) -> int:
        """Start what may start; how many that is."""
        ours = frozenset(self._proving.values()) | {one.host for one in self._measured.values()}
        begun = 0
        if self._looked_at is None:
            return begun
        for start in place(queue.waiting, queue.fleet):
            if start.host in ours:
                continue
            attempt = self._means.ledger.claim(start, self.name)
            if attempt is None:
                continue
            host = queue.fleet.hosts[start.host]
            work = self._means.measurement(start.job, host.name, host.machine)
            gpus = queue.fleet.testbeds[start.job.testbed].gpus
            self._measured[attempt.id] = attempt
            self._means.cluster.start(Order(attempt.id, host.name, gpus, work))
            begun += 1
        return begun

    def _goes_on(self, queue: Queue, begun: int) -> bool:
        if begun or self._measured or self._proving or self._elsewhere or self._looked_at is None:
            self._busy_at = self._now()
            return True
        patient = self._now() - self._busy_at < timedelta(seconds=self._terms.patience_s)
        return bool(queue.waiting) and patient

    def _explain(self, queue: Queue) -> None:
        """Note why jobs wait, as far as it is news."""
        reasons = {job.key: why_waiting(job, queue.fleet) for job in queue.waiting}
        news = {key: why for key, why in reasons.items() if self._explained.get(key, "") != why}
        if news:
            self._means.ledger.explain(news)
        self._explained = reasons
        self._tally.left = Counter(reasons.values())

    def _leave(self) -> None:
        """Give back what is in hand; where the database is away, others find it."""
        try:
            self._recover(self.name, frozenset())
            self._means.roll.leave(self.name)
        except DatabaseError as error:
            self._means.say(f"left without a word to the database: {error}")


def unsteady(run: Run) -> str:
    """Say what an A/A shows to differ, although nothing does; empty for a steady host."""
    report = report_of(run)
    if report.failures:
        return f"its A/A has failed trials: {report.failures[0]}"
    moved = [
        f"{one.metric.id} {one.effect:+.1%}"
        for one in report.comparisons
        if one.verdict in _SHIFTED and stands(one, report) and one.effect is not None
    ]
    return f"its A/A tells one build from itself: {', '.join(moved)}" if moved else ""
