"""A fleet whose time passes at once: the real queue and the real driver, on pretended hosts.

::

    python -m tests.unit.orchestration.fleet.simulated \\
        --hosts 20 --scenarios 200 --nights 30 --bad 0.05

Each night some hosts are bad: away, slow, or with another driver. Nothing is measured; a record of
made-up numbers stands for each measurement, and its minutes pass on the simulated clock.
"""

import heapq
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import click
from sqlalchemy import event, select

from hybridwatch.database.connection import Database, file_url, parsed
from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.orchestration.fleet.cluster import (
    Ended,
    Fate,
    HealthReport,
    HostOrder,
    JobCommand,
    Node,
    Result,
)
from hybridwatch.orchestration.fleet.driver import (
    DriverSettings,
    DriverSummary,
    QueueDriver,
)
from hybridwatch.orchestration.fleet.hosts import HostRegistry
from hybridwatch.orchestration.fleet.job import HostKind, HostStatus, Job
from hybridwatch.orchestration.fleet.job_queue import JobQueue
from tests.unit.orchestration.fleet.pretended import NOW, a_job, job_result, measurement

DRIVER = "570.1"
BED = HostKind(name="any", expect={"driver": DRIVER})


@dataclass
class Machine:
    """A pretended host.

    Attributes:
        speed: What its times are multiplied by.
        driver: What it says of its GPU's driver.
        away: Whether it is not there.
        dies: Scenarios that take its worker with them.
    """

    speed: float = 1.0
    driver: str = DRIVER
    away: bool = False
    dies: frozenset[str] = frozenset()

    @property
    def is_bad(self) -> bool:
        return self.away or self.speed > 1.02 or self.driver != DRIVER


@dataclass
class Simulated:
    """Hosts, and the only clock there is."""

    machines: dict[str, Machine]
    minutes: Callable[[str], float] = lambda _: 10.0
    seed: int = 1
    now: datetime = NOW
    busy: dict[str, str] = field(default_factory=dict)
    done: list[tuple[str, str, datetime]] = field(default_factory=list)
    _events: list[tuple[datetime, int, HostOrder]] = field(default_factory=list)
    _stopped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._count = 0

    def nodes(self) -> Sequence[Node]:
        return [Node(name, {}) for name, one in self.machines.items() if not one.away]

    def start(self, order: HostOrder) -> None:
        assert order.host not in self.busy, f"{order.host} is to do two things at a time"
        self.busy[order.host] = order.id
        minutes = 0.05
        if isinstance(order.work, JobCommand):
            minutes = self.minutes(order.work.command[3]) * self.machines[order.host].speed
        self._count += 1
        event_ = self.now + timedelta(minutes=minutes), self._count, order
        heapq.heappush(self._events, event_)

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """Let time pass up to the next end, but no longer than asked."""
        until = self.now + timedelta(seconds=wait_s)
        if not self._events or self._events[0][0] > until:
            self.now = until
            return []
        at, _, order = heapq.heappop(self._events)
        self.now = max(self.now, at)
        del self.busy[order.host]
        return [self._end(order)]

    def stop(self, order_id: str) -> None:
        self._stopped.add(order_id)

    def close(self) -> None:
        self._events.clear()
        self.busy.clear()

    def _end(self, order: HostOrder) -> Ended:
        machine = self.machines[order.host]
        if order.id in self._stopped:
            return Ended(order, Fate.STOPPED)
        if machine.away:
            return Ended(order, Fate.HOST_GONE, reason="no heartbeat")
        if not isinstance(order.work, JobCommand):
            return Ended(order, Fate.GAVE, self._shown(machine))
        scenario = order.work.command[3]
        if scenario in machine.dies:
            return Ended(order, Fate.DIED, reason="killed by signal 9")
        self.done.append((order.host, scenario, self.now))
        outcome: Result = job_result(order.work, self.now)
        return Ended(order, Fate.GAVE, outcome)

    def _shown(self, machine: Machine) -> HealthReport:
        """Kernel times as a machine with a little company has them: most near the fastest."""
        sides = tuple(
            [0.01 * machine.speed * (1 + self._random.expovariate(1 / 0.01)) for _ in range(60)]
            for _ in range(2)
        )
        return HealthReport({"driver": machine.driver}, (sides[0], sides[1]))


@contextmanager
def timed(database: Database) -> Iterator[list[float]]:
    """Collect the seconds of every statement."""
    seconds: list[float] = []
    engine = database._engine

    @event.listens_for(engine, "before_cursor_execute")
    def begin(connection, cursor, statement, parameters, context, executemany) -> None:
        context.began = time.perf_counter()

    @event.listens_for(engine, "after_cursor_execute")
    def end(connection, cursor, statement, parameters, context, executemany) -> None:
        seconds.append(time.perf_counter() - context.began)

    yield seconds
    event.remove(engine, "before_cursor_execute", begin)
    event.remove(engine, "after_cursor_execute", end)


SLOW = DriverSettings(look_s=240.0, wait_s=240.0, patience_s=1800.0)
"""A driver that looks around seldom: of a simulated night every step costs real time."""


@dataclass
class World:
    """A simulated fleet with its queue."""

    database: Database
    results: Path
    cluster: Simulated
    said: list[str] = field(default_factory=list)
    settings: DriverSettings = SLOW

    @property
    def job_queue(self) -> JobQueue:
        return JobQueue(self.database, lambda: self.cluster.now)

    @property
    def registry(self) -> HostRegistry:
        return HostRegistry(self.database, lambda: self.cluster.now)

    def driver(self) -> QueueDriver:
        place = self.job_queue, self.cluster, self.results
        return QueueDriver(*place, self.said.append, self.settings, measurement)

    def plan(self, jobs: Sequence[Job], *beds: HostKind) -> int:
        self.job_queue.make()
        return self.job_queue.plan(jobs, beds or (BED,))

    def drain(self) -> DriverSummary:
        return self.driver().drain()

    def states(self) -> dict[str, str]:
        with self.database.reading() as connection:
            return {row.key: row.state for row in connection.execute(select(JOB))}

    def hosts_of_series(self) -> dict[str, set[str]]:
        """Where each series has records."""
        joined = select(JOB.c.series, ATTEMPT.c.host).join(ATTEMPT, ATTEMPT.c.job == JOB.c.key)
        with self.database.reading() as connection:
            found: dict[str, set[str]] = {}
            for row in connection.execute(joined.where(ATTEMPT.c.end == "stored")):
                found.setdefault(row.series, set()).add(row.host)
            return found


def hold_nights(
    world: World, scenarios: int, nights: int, bad: float, say: Callable[[str], None]
) -> Counter[str]:
    """Hold night after night; gives how many jobs ended how, over all of them.

    A bad host is well again the next night: a person has lifted its quarantine.
    """
    drawn = random.Random(world.cluster.seed)
    total: Counter[str] = Counter()
    for night in range(nights):
        world.cluster.now = NOW + timedelta(days=night)
        names = sorted(world.cluster.machines)
        count = round(bad * len(names))
        for name in names:
            world.cluster.machines[name] = Machine()
        # The first night shows what is usual.
        for name in drawn.sample(names, count if night else 0):
            world.cluster.machines[name] = drawn.choice(
                [Machine(away=True), Machine(speed=1.08), Machine(driver="999")]
            )
        for name, host in world.registry.hosts().items() if night else ():
            if host.standing is HostStatus.QUARANTINED:
                world.registry.set_status(name, HostStatus.NEW, "")
        now = world.cluster.now
        jobs = [a_job(number, batch_id=f"night {night}", now=now) for number in range(scenarios)]
        world.plan(jobs)
        world.drain()
        world.cluster.now = now + timedelta(hours=13)
        world.job_queue.expire()
        states = Counter(world.states().values()) - total
        say(f"night {night}: {dict(states)}")
        total += states
    return total


@click.command()
@click.option("--hosts", default=20, show_default=True)
@click.option("--scenarios", default=200, show_default=True)
@click.option("--nights", default=30, show_default=True)
@click.option("--bad", default=0.05, show_default=True)
@click.option("--database", default="", help="URL; a SQLite file of its own without.")
def main(hosts: int, scenarios: int, nights: int, bad: float, database: str) -> None:
    """Hold nights, and print what came of them."""
    with tempfile.TemporaryDirectory() as folder:
        url = (
            parsed(database, "--database") if database else file_url(Path(folder) / "queue.sqlite")
        )
        machines = {f"host-{number:02}": Machine() for number in range(hosts)}
        cluster = Simulated(machines, minutes=lambda scenario: 5 + int(scenario[-3:]) % 20)
        world = World(Database(url), Path(folder), cluster)
        with timed(world.database) as seconds:
            total = hold_nights(world, scenarios, nights, bad, click.echo)
        series = world.hosts_of_series()
        wandering = sum(len(places) > 1 for places in series.values())
        click.echo(f"jobs: {dict(total)}")
        click.echo(f"series: {len(series)}, measured on more than one host: {wandering}")
        worst, share = max(seconds), sum(one > 0.05 for one in seconds) / len(seconds)
        middle = sorted(seconds)[len(seconds) // 2]
        click.echo(
            f"statements: {len(seconds)}, median {1000 * middle:.2f} ms, longest "
            f"{1000 * worst:.0f} ms, over 50 ms: {share:.4%}"
        )


if __name__ == "__main__":
    main()
