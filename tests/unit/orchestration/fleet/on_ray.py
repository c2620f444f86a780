"""A real Ray cluster of labelled nodes on this machine, with pretended measurements.

::

    python -m tests.unit.orchestration.fleet.on_ray --jobs 500
    python -m tests.unit.orchestration.fleet.on_ray --jobs 500 --raylets 20 --drivers 5 \\
        --heads 2 --databases 3

The second one kills raylets, drivers, the head with all its nodes, and the database's server while
the queue is drained, and starts them again, as a service manager would. It prints what it found and
fails unless every job has its one record, from the host that its series lives on.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import psutil
from sqlalchemy import func, select

from hybridwatch.database.connection import DATABASE_VARIABLE, Database, parsed
from hybridwatch.database.schema import ATTEMPT, JOB
from hybridwatch.errors import DatabaseError
from hybridwatch.orchestration.fleet.job import HostKind
from hybridwatch.orchestration.fleet.job_queue import JobQueue, utc_now
from hybridwatch.records.store import list_records, read_run
from tests.postgres import MISSING, Server, running
from tests.unit.orchestration.fleet.pretended import SECONDS, a_job
from tests.unit.orchestration.fleet.pretended_run import WITNESS

ROOT = Path(__file__).parents[4]
_MEMORY = 80 * 2**20
_LIMIT_S = 3600.0
_STARTS = 5
_SHOWN = 120


class Nodes:
    """The Ray cluster: a head that measures nothing, and hosts ``h0`` and so on.

    Args:
        count: How many hosts.
        machine: Hosts of one machine take turns; without a name each is a machine of its own.
    """

    def __init__(self, count: int, machine: str = "") -> None:
        self._count = count
        self._labels = {"kind": "made-up"} | ({"machine": machine} if machine else {})
        self._cluster: Any = None
        self._hosts: dict[str, Any] = {}
        self.start()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def start(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "object_store_memory": _MEMORY, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        for number in range(self._count):
            self.add(f"h{number}")

    def add(self, name: str) -> None:
        """Start a node; on a busy machine Ray may give up after half a minute: then again."""
        failed: Exception | None = None
        for _ in range(_STARTS):
            before = set(psutil.Process().children(recursive=True))
            try:
                self._hosts[name] = self._started(name)
            except Exception as error:  # noqa: BLE001 (Ray raises plain ones)
                failed = error
                click.echo(f"{name}: {error}", err=True)
                for process in set(psutil.Process().children(recursive=True)) - before:
                    process.kill()
            else:
                return
        raise click.ClickException(f"{name}: did not start in {_STARTS} tries") from failed

    def _started(self, name: str) -> Any:
        return self._cluster.add_node(
            num_cpus=1,
            object_store_memory=_MEMORY,
            include_dashboard=False,
            resources={"measurement": 1},
            labels={"host": name, "own": name} | self._labels,
        )

    def kill(self, name: str) -> None:
        self._cluster.remove_node(self._hosts.pop(name), allow_graceful=False)

    def stop(self) -> None:
        self._cluster.shutdown()
        self._hosts.clear()


@dataclass
class Fleet:
    """Everything that can be killed."""

    results: Path
    server: Server
    nodes: Nodes
    database: Database
    told: list[str] = field(default_factory=list)
    _driver: subprocess.Popen[bytes] | None = None

    def drive(self) -> None:
        """Start a driver if there is none, as a service manager does."""
        if self._driver is not None and self._driver.poll() is None:
            return
        words = [sys.executable, "-u", "-m", "tests.unit.orchestration.fleet.pretended"]
        words += [self.nodes.address, str(self.results)]
        with (self.results / "driver.txt").open("ab") as log:
            self._driver = subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log)

    def is_drained(self) -> bool:
        """Whether the driver left because nothing was left to do."""
        return self._driver is not None and self._driver.poll() == 0

    def done(self) -> int:
        """How many jobs are done; -1 while the database is away."""
        query = select(func.count()).select_from(JOB).where(JOB.c.state == "done")
        try:
            with self.database.reading() as connection:
                return int(connection.scalar(query) or 0)
        except DatabaseError:
            return -1

    def hurt(self, what: str, drawn: random.Random) -> None:
        """Kill one thing, and start it again."""
        self.told.append(what)
        click.echo(f"{self.done()} done: killing a {what}", err=True)
        match what:
            case "raylet":
                name = f"h{drawn.randrange(self.nodes._count)}"
                self.nodes.kill(name)
                self.nodes.add(name)
            case "driver":
                self.end()
            case "head":
                self.nodes.stop()
                self.nodes.start()
                self.end()  # Ray ends a process that has lost its head, within a minute
            case _:
                self.server.stop()
                time.sleep(3)
                self.server.start()

    def end(self) -> None:
        if self._driver is not None:
            self._driver.send_signal(signal.SIGKILL)
            self._driver.wait()


@contextmanager
def a_fleet(folder: Path, nodes: int, seconds: float) -> Iterator[Fleet]:
    """Start everything, and end it."""
    os.environ[SECONDS] = str(seconds)
    os.environ[WITNESS] = str(folder)
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with running() as server:
        if server is None:
            raise click.ClickException(MISSING)
        os.environ[DATABASE_VARIABLE] = server.url
        database = Database(parsed(server.url, "test"))
        fleet = Fleet(folder, server, Nodes(nodes), database)
        try:
            yield fleet
        finally:
            fleet.end()
            fleet.nodes.stop()
            database.close()


def drain(fleet: Fleet, jobs: int, hurts: list[str], seed: int = 1) -> None:
    """Plan jobs, and see them done, with something killed whenever some more are."""
    drawn = random.Random(seed)
    drawn.shuffle(hurts)
    job_queue = JobQueue(fleet.database)
    job_queue.make()
    now = utc_now()
    planned = [a_job(number, testbed="made-up", now=now) for number in range(jobs)]
    job_queue.plan(planned, [HostKind(name="made-up", labels={"kind": "made-up"})])
    at = [round((number + 1) * jobs / (len(hurts) + 1)) for number in range(len(hurts))]
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline and not fleet.is_drained():
        fleet.drive()
        done = fleet.done()
        if at and done >= at[0]:
            fleet.hurt(hurts[0], drawn)
            del at[0], hurts[0]
        time.sleep(0.5)


def problems(fleet: Fleet, jobs: int) -> list[str]:
    """Say what is not as it must be."""
    with fleet.database.reading() as connection:
        rows = connection.execute(select(JOB)).fetchall()
        ends = connection.execute(select(ATTEMPT).where(ATTEMPT.c.end == "stored")).fetchall()
    found = [f"{row.scenario}: {row.state}: {row.reason}" for row in rows if row.state != "done"]
    stored = [path.relative_to(fleet.results).as_posix() for path in list_records(fleet.results)]
    named = [row.record for row in rows if row.record]
    if sorted(stored) != sorted(named) or len(set(named)) != jobs:
        found.append(f"{len(stored)} records for {len(named)} done jobs of {jobs}")
    measured = Counter(read_run(path).scenario.id for path in list_records(fleet.results))
    found += [f"{name}: measured {count} times" for name, count in measured.items() if count > 1]
    hosts = {row.record: row.host for row in ends}
    found += [
        f"{name}: not from host {hosts.get(name)}"
        for name in stored
        if not Path(name).parts[1].endswith(f"-{hosts.get(name)}")
    ]
    found += [f"{path.stem}: measured twice at a time" for path in fleet.results.glob("*.twice")]
    return found


def figures(fleet: Fleet, nodes: int) -> str:
    """Say how long it took, and how much of that was ours."""
    with fleet.database.reading() as connection:
        rows = connection.execute(select(ATTEMPT).order_by(ATTEMPT.c.started_at)).fetchall()
    stored = [row for row in rows if row.end == "stored"]
    lived = [_lived(fleet.results / row.log) for row in stored if row.log]
    wall = (
        max(row.ended_at for row in stored) - min(row.started_at for row in stored)
    ).total_seconds()
    gaps = [
        (later.started_at - earlier.ended_at).total_seconds()
        for name in {row.host for row in stored}
        for earlier, later in pairwise(row for row in stored if row.host == name)
    ]
    inside = [
        (row.ended_at - row.started_at).total_seconds() - _lived(fleet.results / row.log)
        for row in stored
        if row.log
    ]
    overhead = sum(gaps) / len(gaps) + sum(inside) / len(inside)
    lost = Counter(f"{row.end}: {row.reason[:_SHOWN]}" for row in rows if row.end != "stored")
    for reason, count in lost.most_common():
        click.echo(f"{count} {reason}")
    ideal = sum(lived) / nodes
    return (
        f"{len(stored)} measured in {wall:.0f} s, ideal {ideal:.0f} s, ratio {wall / ideal:.3f}; "
        f"overhead of a job {overhead:.3f} s ({sum(gaps) / len(gaps):.3f} s between two); attempts "
        f"{dict(Counter(row.end for row in rows))}; killed {dict(Counter(fleet.told))}"
    )


def _lived(log: Path) -> float:
    """Seconds that a pretended run says it took."""
    return float(log.read_text().rpartition(" in ")[2].split()[0])


@click.command()
@click.option("--jobs", default=500, show_default=True)
@click.option("--nodes", default=5, show_default=True)
@click.option("--seconds", default=4.0, show_default=True, help="Of a pretended measurement.")
@click.option("--raylets", default=0)
@click.option("--drivers", default=0)
@click.option("--heads", default=0)
@click.option("--databases", default=0)
@click.option("--seed", default=1)
def main(jobs: int, nodes: int, seconds: float, seed: int, **hurts: int) -> None:
    """Drain a queue on a cluster of this machine."""
    words = [what.removesuffix("s") for what, count in hurts.items() for _ in range(count)]
    with tempfile.TemporaryDirectory() as name, a_fleet(Path(name), nodes, seconds) as fleet:
        try:
            drain(fleet, jobs, words, seed)
        finally:
            click.echo((fleet.results / "driver.txt").read_text()[-3000:], err=True)
        click.echo(figures(fleet, nodes))
        wrong = problems(fleet, jobs)
        click.echo("\n".join(wrong) or f"{jobs} records, each once, each from its host")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
